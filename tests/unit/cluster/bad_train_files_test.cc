// One bad TRAIN.yaml a row, and the exact first line of the report on it.

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"
#include "tests/unit/cluster/bad_file.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

constexpr std::string_view kModelText = "model: {input: {shape: [4]}, layers: [relu], loss: mse}\n";

// Each row follows kModelText: its first line is line 2.
constexpr BadFile kBadTrains[] = {
    {"steps: ten\n", "t.yaml:2:8: error: expected a whole number for 'steps', got 'ten'"},
    {"steps: \"10\"\n",
     "t.yaml:2:8: error: expected a whole number for 'steps', got the text '10'"},
    {"steps: 1.5\n", "t.yaml:2:8: error: expected a whole number for 'steps', got '1.5'"},
    {"steps: [1]\n", "t.yaml:2:1: error: expected a whole number for 'steps', got a list"},
    {"steps: 0\n", "t.yaml:2:8: error: 'steps' must be from 1 to 1000000000000, got '0'"},
    {"steps: 99999999999999999999\n",
     "t.yaml:2:8: error: 'steps' must be from 1 to 1000000000000, got '99999999999999999999'"},
    {"steps:\n", "t.yaml:2:1: error: 'steps' needs a value: global steps to train; default 1000"},
    {"stpes: 5\n", "t.yaml:2:1: error: unknown key 'stpes' in 'train' - did you mean 'steps'?"},
    {"replication: {staleness: 5}\n",
     "t.yaml:2:15: error: 'staleness' has a meaning only with 'mode: bounded'"},
    {"summaries: {every_steps: 0}\n",
     "t.yaml:2:26: error: 'every_steps' must be from 1 to 1000000000000, got '0'"},
    {"summaries: {timeline_step: 0}\n",
     "t.yaml:2:28: error: 'timeline_step' must be from 1 to 1000000000000, got '0'"},
    {"summaries: {histogram: true}\n",
     "t.yaml:2:13: error: unknown key 'histogram' in 'summaries' - did you mean 'histograms'?"},
    {"learning_rate: 1\n",
     "t.yaml:2:1: error: unknown key 'learning_rate' in 'train' - it belongs in "
     "train.optimizer.gradient_descent"},
    {"lr: 1\n",
     "t.yaml:2:1: error: unknown key 'lr' in 'train' - 'learning_rate' belongs in "
     "train.optimizer.gradient_descent"},
    {"optimizer: {adam: {lr: 1}}\n",
     "t.yaml:2:20: error: unknown key 'lr' in 'adam' - did you mean 'learning_rate'?"},
    {"optimizer: sgd\n",
     "t.yaml:2:12: error: unknown optimizer 'sgd' - did you mean 'gradient_descent'?"},
    {"metrics: [auc]\n",
     "t.yaml:2:1: error: unknown key 'metrics' in 'train' - it belongs in train.model"},
    {"data: {batch_size: 0}\n",
     "t.yaml:2:20: error: 'batch_size' must be from 1 to 1000000, got '0'"},
    {"data: {batch_size: 1000001}\n",
     "t.yaml:2:20: error: 'batch_size' must be from 1 to 1000000, got '1000001'"},
    {"data:\n  batch_size:50\n  seed: 3\n",
     "t.yaml:3:3: error: a space is missing after 'batch_size:'"},
    {"data:\n  batch_size:50\n",
     "t.yaml:3:3: error: expected a map for 'data', got 'batch_size:50': a space is missing after "
     "'batch_size:'"},
    {"data: {batch_size:50}\n",
     "t.yaml:2:8: error: unknown key 'batch_size:50' in 'data' - a space is missing after "
     "'batch_size:'"},
    {"data: {batch_size: 050}\n",
     "t.yaml:2:20: error: '050' begins with 0, which YAML may read as octal: write 50"},
    {"data: {seed: -1}\n",
     "t.yaml:2:14: error: 'seed' must be from 0 to 9223372036854775807, got '-1'"},
    {"data: {train: {images: i}}\n",
     "t.yaml:2:8: error: missing key 'format' in 'train': idx: MNIST's; csv: tables; npy, "
     "npz: NumPy's; images: JPEG, WebP, ..."},
    {"data: {train: {format: csv, label_column: a}}\n",
     "t.yaml:2:8: error: format csv needs 'files', a list of files"},
    {"data: {train: {format: csv, files: [a.csv]}}\n",
     "t.yaml:2:8: error: format csv needs 'label_column' for classes or 'target_columns' for "
     "numbers"},
    {"data: {train: {format: csv, files: [a.csv], label_column: a, target_columns: [b]}}\n",
     "t.yaml:2:62: error: 'label_column' and 'target_columns' exclude each other"},
    {"data: {train: {format: csv, files: [a.csv], label_column: a, delimiter: ab}}\n",
     "t.yaml:2:73: error: 'delimiter' is one character such as ',' or ';', or tab"},
    {"data: {train: {format: csv, files: [a.csv], label_column: a, class_names: [x, y, x]}}\n",
     "t.yaml:2:62: error: two classes are named 'x'"},
    {"data: {train: {format: csv, files: [a], target_columns: []}}\n",
     "t.yaml:2:41: error: 'target_columns' is empty: leave it out, or name at least one"},
    {"data: {train: {format: csv, files: [a], label_column: l, class_names: []}}\n",
     "t.yaml:2:58: error: 'class_names' is empty: leave it out, or name at least one"},
    {"data: {train: {format: csv, files: [a], label_column: l, class_names: [x, y]}, eval: "
     "{format: "
     "csv, files: [a], label_column: l, class_names: [y, x]}}\n",
     "t.yaml:2:80: error: data.train and data.eval have different class_names"},
    {"data: {train: {format: csv, files: [a], label_column: l, feature_columns: []}}\n",
     "t.yaml:2:58: error: 'feature_columns' is empty: leave it out, or name at least one"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {}}}\n",
     "t.yaml:2:58: error: 'categorical_columns' has from 1 to 256 names, got 0"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {}}}}\n",
     "t.yaml:2:80: error: missing key 'columns' in 'u': names, or numbers from 1; an embedding "
     "gives a row for each"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {'u/v': "
     "{columns: [c]}}}}\n",
     "t.yaml:2:80: error: the name of categories has letters, digits, '_' and '-', and at most 128 "
     "characters, got 'u/v'"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[c], hash_bucket_size: 9, vocabulary_list: [x]}}}}\n",
     "t.yaml:2:119: error: 'hash_bucket_size' and 'vocabulary_list' exclude each other"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[c], vocabulary_list: [x, y, x]}}}}\n",
     "t.yaml:2:98: error: the word 'x' is listed twice"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[c]}}}, eval: {format: csv, files: [a], label_column: l}}\n",
     "t.yaml:2:101: error: data.train has the categories 'u', which data.eval lacks"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[c], hash_bucket_size: 5}}}, eval: {format: csv, files: [a], label_column: l, "
     "categorical_columns: {u: {columns: [c], hash_bucket_size: 6}}}}\n",
     "t.yaml:2:122: error: the categories 'u' of data.train and data.eval differ: their number, "
     "hash_bucket_size and vocabulary_list must be equal"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[c], num_oov_buckets: 5}}}}\n",
     "t.yaml:2:98: error: 'num_oov_buckets' needs a 'vocabulary_list': it is for words not in that "
     "list"},
    {"data: {train: {format: csv, files: [a], label_column: l, categorical_columns: {u: {columns: "
     "[]}}}}\n",
     "t.yaml:2:84: error: 'columns' is empty: name at least one"},
    {"data: {train: {format: synthetic, problem: clicks}, eval: {format: synthetic, problem: "
     "linear}}\n",
     "t.yaml:2:53: error: data.train has the categories 'item', which data.eval lacks"},
    {"data: {train: {format: npy, features: f, labels: l, categorical_arrays: {u: {count: 2}}}}\n",
     "t.yaml:2:74: error: missing key 'array' in 'u': npy: a file, relative to this one; npz: an "
     "array; whole numbers from 0"},
    {"data: {train: {format: npy, features: f, labels: l, categorical_columns: {u: {columns: "
     "[c]}}}}\n",
     "t.yaml:2:53: error: 'categorical_columns' has no meaning for format npy"},
    {"data: {train: {format: digits, categorical_columns: {u: {columns: [c]}}}}\n",
     "t.yaml:2:32: error: 'categorical_columns' has no meaning for format digits"},
    {"data: {train: {format: npy, labels: l.npy}}\n",
     "t.yaml:2:8: error: format npy needs 'features', an array"},
    {"data: {train: {format: npy, features: f.npy}}\n",
     "t.yaml:2:8: error: format npy needs 'labels' for classes or 'targets' for numbers"},
    {"data: {train: {format: npz, features: f, labels: l}}\n",
     "t.yaml:2:8: error: format npz needs 'archive', a file"},
    {"data: {train: {format: npy, features: f, labels: l, archive: a}}\n",
     "t.yaml:2:53: error: 'archive' has no meaning for format npy"},
    {"data: {train: {format: synthetic}}\n",
     "t.yaml:2:8: error: format synthetic needs 'problem', the problem to learn"},
    {"data: {train: {format: synthetic, problem: linear, classes: 3}}\n",
     "t.yaml:2:52: error: 'classes' belongs to problem centres"},
    {"data: {train: {format: npy, features: f, labels: l}, eval_split: 1}\n",
     "t.yaml:2:66: error: 'eval_split' must be more than 0 and less than 1, got '1'"},
    {"data: {train: {format: digits}, eval_split: 0.1}\n",
     "t.yaml:2:33: error: 'eval_split' is for data in files: give 'eval' the format of 'train' "
     "instead, and dtf draws other examples for it"},
    {"data: {train: {format: npy, features: f, labels: l}, eval: {format: npy, features: f, "
     "labels: l}, eval_split: 0.1}\n",
     "t.yaml:2:99: error: 'eval' and 'eval_split' exclude each other"},
    {"data: {train: {format: digits}, eval: {format: synthetic, problem: linear}}\n",
     "t.yaml:2:33: error: data.train has uint8 features, but data.eval has float32"},
    {"data: {train: {format: cifar10}}\n",
     "t.yaml:2:8: error: format cifar10 needs 'files', a list of files"},
    {"data: {train: {format: cifar10, files: []}}\n",
     "t.yaml:2:33: error: 'files' is empty: name at least one file"},
    {"data: {train: {format: cifar10, files: [a.bin], count: 3}}\n",
     "t.yaml:2:49: error: 'count' has no meaning for format cifar10"},
    {"data: {train: {format: cifar10, files: [a.bin], label_mode: fine}}\n",
     "t.yaml:2:49: error: 'label_mode' has no meaning for format cifar10"},
    {"data: {train: {format: cifar100, files: [a]}, eval: {format: cifar100, files: [a], "
     "label_mode: coarse}}\n",
     "t.yaml:2:47: error: data.train and data.eval have a different label_mode"},
    {"data: {train: {format: digits, files: [a.bin]}}\n",
     "t.yaml:2:32: error: 'files' has no meaning for format digits"},
    {"data: {train: {format: ixd}}\n",
     "t.yaml:2:24: error: unknown format 'ixd' - did you mean 'idx'?"},
    {"data: {train: {format: idx, labels: l}}\n",
     "t.yaml:2:8: error: format idx needs 'images', a file"},
    {"data: {train: {format: digits, images: i}}\n",
     "t.yaml:2:32: error: 'images' has no meaning for format digits"},
    {"data: {train: {format: idx, images: i, labels: l, count: 3}}\n",
     "t.yaml:2:51: error: 'count' has no meaning for format idx"},
    {"data: {train: {format: images}}\n",
     "t.yaml:2:8: error: format images needs 'folder', with images"},
    {"data: {train: {format: images, folder: f, resize: pad}}\n",
     "t.yaml:2:51: error: unknown resize 'pad' (one of stretch, crop)"},
    {"data: {train: {format: images, folder: f, class_names: [a, b, a]}}\n",
     "t.yaml:2:43: error: two classes are named 'a'"},
    {"data: {train: {format: images, folder: f, files: [a]}}\n",
     "t.yaml:2:43: error: 'files' has no meaning for format images"},
    {"data: {augment: {crop_padding: -1}}\n",
     "t.yaml:2:32: error: 'crop_padding' must be from 0 to 1000, got '-1'"},
    {"steps: 5\nepochs: 2\n", "t.yaml:3:9: error: 'steps' and 'epochs' exclude each other"},
    {"epochs: 0\n", "t.yaml:2:9: error: 'epochs' must be from 1 to 1000000, got '0'"},
    {"data: {train: {format: digits}}\neval: {every_steps: 5}\n",
     "t.yaml:3:1: error: 'eval' needs a dataset: add 'eval' to 'data'"},
    {"optimizer: adagrad_da\n",
     "t.yaml:2:12: error: 'adagrad_da' is not available in this version"},
    {"optimizer: {rmsprop: {decay: 1}}\n",
     "t.yaml:2:30: error: 'decay' must be at least 0 and less than 1, got '1'"},
    {"optimizer: {momentum: {use_nesterov: 1}}\n",
     "t.yaml:2:38: error: expected true or false for 'use_nesterov', got '1'"},
    {"optimizer: adamw\n",
     "t.yaml:2:12: error: missing key 'weight_decay' in 'adamw': this times w and the "
     "learning_rate is subtracted from w"},
    {"optimizer: {ftrl: {learning_rate_power: 0.5}}\n",
     "t.yaml:2:41: error: 'learning_rate_power' must be at least -10 and at most 0, got '0.5'"},
    {"optimizer: {ftrl: {learning_rate: {cosine: {}}}}\n",
     "t.yaml:2:20: error: expected a number for 'learning_rate', got a map"},
    {"optimizer: {lars: {rho: 0.5}}\n",
     "t.yaml:2:20: error: unknown key 'rho' in 'lars' - it belongs in train.optimizer.adadelta"},
    {"optimizer: {adam: {clip_by_valeu: 1}}\n",
     "t.yaml:2:20: error: unknown key 'clip_by_valeu' in 'adam' - did you mean 'clip_by_value'?"},
    {"optimizer: {adam: {clip_by_global_norm: 0}}\n",
     "t.yaml:2:41: error: 'clip_by_global_norm' must be more than 0 and at most 1000000, got '0'"},
    {"optimizer: {adam: {moving_average: 0.9}}\n",
     "t.yaml:2:36: error: expected a map for 'moving_average', got '0.9': write {decay: 0.9}"},
    {"optimizer: {adam: {moving_average: {decay: 1}}}\n",
     "t.yaml:2:44: error: 'decay' must be more than 0 and less than 1, got '1'"},
    {"optimizer: {adam: {learning_rate: [1]}}\n",
     "t.yaml:2:20: error: expected a number, or {schedule: {settings}} for 'learning_rate', got a "
     "list"},
    {"optimizer: {adam: {learning_rate: {expo: {}}}}\n",
     "t.yaml:2:36: error: unknown learning-rate schedule 'expo' (one of constant, exponential, "
     "polynomial, cosine)"},
    {"optimizer: {adam: {learning_rate: {cosine: {initial: 1}}}}\n",
     "t.yaml:2:36: error: missing key 'decay_steps' in 'cosine': updates of one decay"},
    {"optimizer: {adam: {learning_rate: {cosine: {initial: 1, decay_steps: 0}}}}\n",
     "t.yaml:2:70: error: 'decay_steps' must be from 1 to 1000000000000, got '0'"},
    {"optimizer: {adam: {learning_rate: {constant: {initial: 1, decay_steps: 3}}}}\n",
     "t.yaml:2:59: error: unknown key 'decay_steps' in 'constant' - it belongs in "
     "train.optimizer.NAME.learning_rate.exponential"},
    {"optimizer: adma\n", "t.yaml:2:12: error: unknown optimizer 'adma' - did you mean 'adam'?"},
    {"optimizer: {adam: , adagrad: }\n",
     "t.yaml:2:1: error: expected one optimizer, got a map, 'adam' and 'adagrad'"},
    {"optimizer: {adagrad: {learning_rate: 0}}\n",
     "t.yaml:2:38: error: 'learning_rate' must be more than 0 and at most 1000000, got '0'"},
    {"optimizer: {adagrad: {learning_rate: .inf}}\n",
     "t.yaml:2:38: error: 'learning_rate' must be more than 0 and at most 1000000, got '.inf'"},
    {"optimizer: {adagrad: {learning_rate: nan}}\n",
     "t.yaml:2:38: error: 'learning_rate' must be more than 0 and at most 1000000, got 'nan'"},
    {"optimizer: {adagrad: {learning_rate: fast}}\n",
     "t.yaml:2:38: error: expected a number for 'learning_rate', got 'fast'"},
    {"optimizer: {adagrad: {beta1: 0.5}}\n",
     "t.yaml:2:23: error: unknown key 'beta1' in 'adagrad' - it belongs in train.optimizer.adam"},
    {"optimizer: {adam: {beta1: 1}}\n",
     "t.yaml:2:27: error: 'beta1' must be at least 0 and less than 1, got '1'"},
    {"replication: {mode: bounded}\n",
     "t.yaml:2:21: error: 'mode: bounded' needs 'staleness': how many steps a worker may be ahead "
     "of the slowest"},
    {"replication: {mode: bounded, staleness: 3, total_num_replicas: 2}\n",
     "t.yaml:2:44: error: 'total_num_replicas' has a meaning only with 'mode: sync'"},
    {"replication: {mode: bounded, staleness: -1}\n",
     "t.yaml:2:41: error: 'staleness' must be from 0 to 65536, got '-1'"},
    {"replication: {mode: allreduce}\n",
     "t.yaml:2:21: error: 'mode: allreduce' needs a cluster without 'ps': leave 'ps' out, so that "
     "the workers hold the parameters, or write mode: sync, which gives the same values"},
    {"replication: {leader: worker/0}\n",
     "t.yaml:2:23: error: 'leader' needs a cluster without 'ps': the leader of this one is ps/0, "
     "the first of 'cluster.ps'"},
    {"replication: {mode: asnyc}\n",
     "t.yaml:2:21: error: unknown mode 'asnyc' - did you mean 'async'?"},
    {"replication: {replicas_to_aggregate: 2}\n",
     "t.yaml:2:15: error: 'replicas_to_aggregate' has a meaning only with 'mode: sync'"},
    {"replication: {mode: sync, overlap: true}\n",
     "t.yaml:2:27: error: 'overlap' needs 'mode: async' or 'mode: bounded': each gradient of a "
     "sync step is computed "
     "from the newest parameters"},
    {"replication: {overlap: 1}\n",
     "t.yaml:2:24: error: expected true or false for 'overlap', got '1'"},
    {"replication: {mode: sync, replicas_to_aggregate: 0}\n",
     "t.yaml:2:50: error: 'replicas_to_aggregate' must be from 1 to 65536, got '0'"},
    {"placement: {pins: {w: /job:worker/task:0}}\n",
     "t.yaml:2:23: error: a variable lives on a device like /job:ps/task:0, got "
     "'/job:worker/task:0'"},
    {"placement: {pins: [w]}\n", "t.yaml:2:13: error: expected a map for 'pins', got a list"},
    {"placement: {shares: [0]}\n",
     "t.yaml:2:22: error: 'shares' must be more than 0 and at most 1000000, got '0'"},
    {"placement: {strategy: greedy, shares: [1]}\n",
     "t.yaml:2:31: error: 'shares' has a meaning only with 'strategy: even' or 'strategy: hybrid'"},
    {"placement: {strategy: auto, among: [hybird]}\n",
     "t.yaml:2:37: error: unknown among 'hybird' - did you mean 'hybrid'?"},
    {"placement: {among: [ps]}\n",
     "t.yaml:2:13: error: 'among' has a meaning only with 'strategy: auto'"},
    {"placement: by_hand\n",
     "t.yaml:2:12: error: unknown strategy 'by_hand' (one of round_robin, greedy, even, hybrid, "
     "auto)"},
    {"placement: {strategy: gredy}\n",
     "t.yaml:2:23: error: unknown strategy 'gredy' - did you mean 'greedy'?"},
    {"placement: {partition: all}\n",
     "t.yaml:2:24: error: expected none or {min_bytes: N} for 'partition', got 'all'"},
    {"placement: {partition: {min_bytes: 0}}\n",
     "t.yaml:2:36: error: 'min_bytes' must be from 1 to 1099511627776, got '0'"},
    {"eval: {every_steps: 0}\n",
     "t.yaml:2:21: error: 'every_steps' must be from 1 to 1000000000000, got '0'"},
    {"checkpoint: often\n",
     "t.yaml:2:13: error: expected none, or a map such as {every_steps: 1000} for 'checkpoint', "
     "got "
     "'often'"},
    {"early_stopping: {patience: 2}\n",
     "t.yaml:2:1: error: 'early_stopping' needs evaluations while the job trains: give 'data' an "
     "'eval' or 'eval_split', and set eval.every_steps"},
    {"report: often\n", "t.yaml:2:9: error: expected a map for 'report', got 'often'"},
    {"<<: {step: 3}\n", "t.yaml:2:6: error: unknown key 'step' in 'train' - did you mean 'steps'?"},
};

// Models of files without other keys; each row starts on line 2.
constexpr BadFile kBadModels[] = {
    {"  layers: [relu]\n  loss: mse\n",
     "t.yaml:1:1: error: missing key 'input' in 'model': one example"},
    {"  input: {shape: [0]}\n  layers: [relu]\n  loss: mse\n",
     "t.yaml:2:19: error: 'shape' must be from 1 to 1000000, got '0'"},
    {"  input: {shape: []}\n  layers: [relu]\n  loss: mse\n",
     "t.yaml:2:11: error: 'shape' must have from 1 to 8 sizes, got 0"},
    {"  input: {shape: [100000, 100000, 1000000]}\n  layers: [relu]\n  loss: mse\n",
     "t.yaml:2:11: error: 'shape' has more than 1073741824 elements"},
    {"  input: {shape: [4]}\n  layers: []\n  loss: mse\n",
     "t.yaml:3:3: error: 'layers' must have from 1 to 1000 layers, got 0"},
    {"  input: {shape: [4]}\n  layers: [relu]\n  loss: hubber\n",
     "t.yaml:4:9: error: unknown loss 'hubber' - did you mean 'huber'?"},
    {"  input: {shape: [4]}\n  layers: [relu]\n  loss: mse\n  metrics: [acuracy]\n",
     "t.yaml:5:13: error: unknown metrics 'acuracy' - did you mean 'accuracy'?"},
    {"  input: {shape: [4]}\n  layers: [dens: {units: 3}]\n  loss: mse\n",
     "t.yaml:3:12: error: unknown layer 'dens' - did you mean 'dense'?"},
    {"  input: {shape: [4]}\n  layers: [conv2]\n  loss: mse\n",
     "t.yaml:3:12: error: unknown layer 'conv2' - did you mean 'conv2d'?"},
    {"  input: {shape: [4]}\n  layers: [block: {layers: [dens: {units: 3}]}]\n  loss: mse\n",
     "t.yaml:3:29: error: unknown layer 'dens' - did you mean 'dense'?"},
    {"  input: {shape: [4]}\n  layers: [conv2d: {filters: 2, kernel_size: [3, 3, 3]}]\n  loss: "
     "mse\n",
     "t.yaml:3:33: error: 'kernel_size' must be one number or 2 of them, got 3"},
    {"  input: {shape: [4]}\n  layers: [conv2d: {filters: 2, kernel_size: 3, padding: sam}]\n  "
     "loss: "
     "mse\n",
     "t.yaml:3:58: error: unknown padding 'sam' - did you mean 'same'?"},
    {"  input: {shape: [4]}\n  layers: [dropout]\n  loss: mse\n",
     "t.yaml:3:12: error: missing key 'rate' in 'dropout': the probability that an element becomes "
     "0"},
    {"  input: {shape: [4]}\n  layers: [dropout: 0.3]\n  loss: mse\n",
     "t.yaml:3:21: error: expected a map for 'dropout', got '0.3': write {rate: 0.3}"},
    {"  input: {shape: [4]}\n  layers: [dense: 10]\n  loss: mse\n",
     "t.yaml:3:19: error: expected a map for 'dense', got '10': write {units: 10}"},
    {"  input: {shape: [4]}\n  layers: [dense: ten]\n  loss: mse\n",
     "t.yaml:3:19: error: expected a map for 'dense', got 'ten'"},
    {"  input: {shape: [4]}\n  layers: [conv2d: 8]\n  loss: mse\n",
     "t.yaml:3:20: error: expected a map for 'conv2d', got '8': write {filters: 8, kernel_size: "
     "...}"},
    {"  input: {shape: [4]}\n  layers: [fc: {units: 3}]\n  loss: mse\n",
     "t.yaml:3:12: error: unknown layer 'fc' - did you mean 'dense'?"},
    {"  input: {shape: [4]}\n  layers: [dropout: {rate: 1}]\n  loss: mse\n",
     "t.yaml:3:28: error: 'rate' must be at least 0 and less than 1, got '1'"},
    {"  input: {shape: [4]}\n  layers: [dropout: {rate: -0.5}]\n  loss: mse\n",
     "t.yaml:3:28: error: 'rate' must be at least 0 and less than 1, got '-0.5'"},
    {"  input: {shape: [4]}\n  layers: [dropout: {rate: half}]\n  loss: mse\n",
     "t.yaml:3:28: error: expected a number for 'rate', got 'half'"},
    {"  input: {shape: [4]}\n  layers: [dropout: {rate: 0.5, units: 3}]\n  loss: mse\n",
     "t.yaml:3:33: error: unknown key 'units' in 'dropout' - it belongs in "
     "train.model.layers.N.dense"},
    {"  input: {shape: [4]}\n  layers: [dense]\n  loss: mse\n",
     "t.yaml:3:12: error: missing key 'units' in 'dense': outputs of the layer"},
    {"  input: {shape: [4]}\n  layers: [dense: {units: 0}]\n  loss: mse\n",
     "t.yaml:3:27: error: 'units' must be from 1 to 1000000, got '0'"},
    {"  input: {shape: [4]}\n  layers:\n    - dense:\n      units: 3\n  loss: mse\n",
     "t.yaml:4:7: error: expected one layer, got a map, 'dense' and 'units': indent the settings "
     "of 'dense' further"},
    {"  input: {shape: [4]}\n  layers: [dense: {units: 1, use_bias: yes}]\n  loss: mse\n",
     "t.yaml:3:40: error: expected true or false for 'use_bias', got 'yes'"},
    {"  input: {shape: [4]}\n  layers: [dense: {units: 1, activation: rleu}]\n  loss: mse\n",
     "t.yaml:3:42: error: unknown activation 'rleu' - did you mean 'relu'?"},
    {"  input: {shape: [4]}\n  layers: [relu: {name: a}, tanh: {name: a}]\n  loss: mse\n",
     "t.yaml:3:42: error: two layers are named 'a'"},
    {"  input: {shape: [4]}\n  layers: [relu: {name: a/b}]\n  loss: mse\n",
     "t.yaml:3:25: error: a layer's name has letters, digits, '.', '_' and '-', starts with none "
     "of '.' and '-', and "
     "is at most 128 long, got 'a/b'"},
    {"  input: {shape: [4]}\n  loss: mse\n",
     "t.yaml:1:1: error: missing key 'layers' in 'model': from the input to the last; or 'graph', "
     "the "
     "network op by op"},
    {"  input: {shape: [4]}\n  loss: mse\n  layers: [relu]\n  graph: {ops: [], output: y}\n",
     "t.yaml:5:3: error: a model has 'layers' or 'graph': for both, make it one of the layers, "
     "'- graph: {ops: ...}'"},
    {"  input: {shape: [4]}\n  loss: mse\n  graph: {ops: [relu]}\n",
     "t.yaml:4:3: error: missing key 'output' in 'graph': the tensor that the layer returns"},
    {"  input: {shape: [4]}\n  layers: [relu: {units: 3}]\n  loss: mse\n",
     "t.yaml:3:19: error: unknown key 'units' in 'relu' - it belongs in "
     "train.model.layers.N.dense"},
};

}  // namespace

TEST(BadTrainFiles, Keys) {
  const TemporaryFiles files;
  for (const BadFile& bad : kBadTrains) {
    files.write("t.yaml", std::string(kModelText) + std::string(bad.text));
    EXPECT_EQ(firstLine(badConfigOf([] { testing::readTrainFile("t.yaml"); })), bad.first_line)
        << bad.text;
  }
}

TEST(BadTrainFiles, Models) {
  const TemporaryFiles files;
  for (const BadFile& bad : kBadModels) {
    files.write("t.yaml", "model:\n" + std::string(bad.text));
    EXPECT_EQ(firstLine(badConfigOf([] { testing::readTrainFile("t.yaml"); })), bad.first_line)
        << bad.text;
  }
}

}  // namespace dtf::cluster
