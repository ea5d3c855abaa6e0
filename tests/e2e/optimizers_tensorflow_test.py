"""Graph.minimize() with each optimizer beside TensorFlow's own: variables and slots after 25 steps.

Usage: optimizers_tensorflow_test.py LIBDTF [WORD]      WORD: only cases with it in their name
       Needs DTF_SOURCE_ROOT.

Both get the same gradients: the loss is sum(w * x), or sum(gather(w, ids) * x). Its gradient by w is
x, or IndexedSlices with ids that repeat. In a network each side computes its own gradients. Slots
are compared by TensorFlow's names. A variable may differ by 3e-6 of its largest element. Exit 77
(skipped, with the reason) where Python lacks TensorFlow.

Slots of adam and adamw are compared with betas that a float32 has. TensorFlow subtracts the float32
of 0.999 from 1, so its mean of squares is 1.3e-5 less than the formula's; its bias correction has
the same error, and the variables don't.

The other side is tf.compat.v1.train where it has the optimizer. Where it hasn't:
- adamw: Keras's. tf.contrib.opt's is gone, which decayed by weight_decay alone; it is written with
  ops, for rows too, and is given learning_rate * weight_decay.
- lamb: Keras's, which has no weight decay in the trust ratio; with it, the paper's algorithm 2.
- lars: the paper's algorithm 1, with the rate in the accumulator, as TensorFlow Models' "classic
  momentum". tf.contrib.opt's, now gone, multiplied the accumulator by each step's rate.
- warmup_steps: no schedule of TensorFlow begins with rate / warmup_steps; written with ops.
- Keras's other optimizers, where their formula is TensorFlow 1's. It is another one in RMSprop (the
  mean begins at 0), Adagrad (the root has an epsilon) and Ftrl (beta is in the rate).
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import tensorflow as tf
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh build/python-env --tensorflow",
          file=sys.stderr)
    sys.exit(77)

SEED, STEPS, BOUND = 20261205, 25, 3e-6
SHAPES = {"w": (37, 29), "b": (11,)}
ROWS, COLUMNS, READ = 60, 8, 24
BETAS = {"beta1": 1 - 2**-3, "beta2": 1 - 2**-10}  # 1 - beta has no rounding
v1 = tf.compat.v1


class Case:
    """`ours`: a dtf.Optimizer. `theirs`: maps [(gradient, variable)] and the global step to an op that trains. `settings`: of
    minimize(). `rows`: the gradient is of rows; "repeated" or "distinct" ones. `scale`: of the initial values, about as far as the
    steps move them, so that a difference of the steps shows. `without`: slots with this word in their name aren't compared."""

    def __init__(self, name, ours, theirs, *, settings=None, rows=None, scale=0.3, without="/Adam"):
        self.name, self.ours, self.theirs, self.settings = name, ours, theirs, settings or {}
        self.without = without
        self.rows, self.scale = rows, scale
        self.random = np.random.default_rng([SEED, *name.encode()])
        shapes = {"w": (ROWS, COLUMNS)} if rows else SHAPES
        self.initial = {key: (scale * self.random.normal(size=shape)).astype(np.float32) for key, shape in shapes.items()}
        self.feeds = [self.drawn_feeds() for _ in range(STEPS)]

    def drawn_feeds(self):
        if not self.rows:
            return {f"{key}/x": self.random.normal(size=shape).astype(np.float32) for key, shape in SHAPES.items()}
        ids = self.random.choice(ROWS, READ, replace=self.rows == "repeated").astype(np.int32)
        return {"ids": ids, "w/x": self.random.normal(size=(READ, COLUMNS)).astype(np.float32)}

    def loss_by_dtf(self, w, fed):
        losses = [dtf.reduce_sum((dtf.gather(one, fed["ids"]) if self.rows else one) * fed[f"{key}/x"]) for key, one in w.items()]
        return losses[0] if len(losses) == 1 else losses[0] + losses[1]

    def gradients_by_tensorflow(self, w, fed):
        if not self.rows:
            return [fed[f"{key}/x"] for key in w]
        return tf.gradients(tf.reduce_sum(tf.gather(w["w"], fed["ids"]) * fed["w/x"]), w["w"])

    def by_dtf(self, names):
        """Returns the variables of these names at the end."""
        graph = dtf.Graph()
        fed = {key: graph.placeholder(value.dtype, value.shape, key) for key, value in self.feeds[0].items()}
        w = {key: graph.variable(key, initializer=value) for key, value in self.initial.items()}
        training = self.ours.minimize(self.loss_by_dtf(w, fed), **self.settings)
        with dtf.Session(graph) as session:
            session.initialize()
            for feeds in self.feeds:
                session.run(training.train, feeds)
            return {name: session.run(name) for name in names}

    def by_tensorflow(self):
        """Returns all variables at the end but the counters."""
        if isinstance(self.theirs, Keras):
            return self.theirs.trained(self)
        with tf.Graph().as_default(), v1.Session() as session:
            step = v1.train.get_or_create_global_step()
            fed = {key: v1.placeholder(value.dtype, value.shape, key) for key, value in self.feeds[0].items()}
            w = {key: v1.get_variable(key, initializer=value, use_resource=True) for key, value in self.initial.items()}
            pairs = list(zip(self.gradients_by_tensorflow(w, fed), w.values()))
            with tf.control_dependencies([self.theirs(pairs, step)]):
                train = v1.assign_add(step, 1)
            session.run(v1.global_variables_initializer())
            for feeds in self.feeds:
                session.run(train, {fed[key]: value for key, value in feeds.items()})
            kept = [one for one in v1.global_variables() if one is not step and not one.op.name.endswith("_power")]
            return {one.op.name: session.run(one) for one in kept if not self.without or self.without not in one.op.name}

    def difference(self):
        """Returns the greatest difference, and the variable that has it."""
        theirs = self.by_tensorflow()
        ours = self.by_dtf(theirs)
        found = []
        for name, wanted in theirs.items():
            assert ours[name].shape == wanted.shape, f"{self.name}: {name} has the shape {ours[name].shape}, not {wanted.shape}"
            assert np.abs(wanted).max() > 0, f"{self.name}: {name} is zero"
            assert np.isfinite(wanted).all(), f"{self.name}: TensorFlow's {name} isn't finite"
            found.append((float(np.abs(ours[name] - wanted).max() / np.abs(wanted).max()), name))
        return max(found)


class Keras:
    """An optimizer of tf.keras.optimizers, which has no graph."""

    def __init__(self, make):
        self.make = make

    def trained(self, case):
        variables = [tf.keras.Variable(value, name=key) for key, value in case.initial.items()]
        optimizer = self.make()
        optimizer.build(variables)
        for feeds in case.feeds:
            optimizer.apply([tf.constant(feeds[f"{key}/x"]) for key in case.initial])
        return {key: variable.numpy() for key, variable in zip(case.initial, variables)}


class Network(Case):
    """An embedding, two dense layers and a cross-entropy: each side computes its own gradients."""

    WORDS, BATCH, CLASSES = 4, 16, 5
    PARTS = {"w": (ROWS, COLUMNS), "hidden": (WORDS * COLUMNS, 12), "bias": (12,), "output": (12, CLASSES)}

    def __init__(self, name, ours, theirs, **more):
        super().__init__(f"network: {name}", ours, theirs, **more)
        self.initial = {key: (0.3 * self.random.normal(size=shape)).astype(np.float32) for key, shape in self.PARTS.items()}

    def drawn_feeds(self):
        return {"ids": self.random.integers(0, ROWS, (self.BATCH, self.WORDS), dtype=np.int32),
                "labels": self.random.integers(0, self.CLASSES, self.BATCH, dtype=np.int32)}

    def loss_by_dtf(self, w, fed):
        words = dtf.reshape(dtf.gather(w["w"], fed["ids"]), [self.BATCH, -1])
        logits = dtf.tanh(dtf.bias_add(words @ w["hidden"], w["bias"])) @ w["output"]
        return dtf.reduce_mean(dtf.sparse_softmax_cross_entropy_with_logits(labels=fed["labels"], logits=logits))

    def gradients_by_tensorflow(self, w, fed):
        words = tf.reshape(tf.gather(w["w"], fed["ids"]), [self.BATCH, -1])
        logits = tf.tanh(words @ w["hidden"] + w["bias"]) @ w["output"]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=fed["labels"], logits=logits))
        return tf.gradients(loss, list(w.values()))


# ---- the other side: each returns a function from [(gradient, variable)] and the step to an op
def tf1(make):
    """`make` maps the global step to an optimizer of tf.compat.v1.train."""
    return lambda pairs, step: make(step).apply_gradients(pairs)


def prepared(change, then):
    """`change` maps the pairs to other pairs."""
    return lambda pairs, step: then(change(pairs), step)


def l2(factor):
    return lambda pairs: [(tf.convert_to_tensor(g) + factor * w, w) for g, w in pairs]


def clipped_by_value(bound):
    return lambda pairs: [(tf.clip_by_value(g, -bound, bound), w) for g, w in pairs]


def clipped_by_global_norm(norm):
    def change(pairs):
        gradients, _ = tf.clip_by_global_norm([g for g, _ in pairs], norm)
        return [(g, w) for g, (_, w) in zip(gradients, pairs)]
    return change


def averaged(decay, train):
    def then(pairs, step):
        with tf.control_dependencies([train(pairs, step)]):
            return tf.train.ExponentialMovingAverage(decay).apply([w for _, w in pairs])
    return then


def adamw_of_contrib(rate, decay, **betas):
    """The decay first, then adam on its result; of rows, of the ones that are named."""
    def train(pairs, step):
        decays = []
        for g, w in pairs:
            if isinstance(g, tf.IndexedSlices):
                rows, _ = tf.unique(g.indices)
                decays.append(w.scatter_sub(tf.IndexedSlices(decay * tf.gather(w, rows), rows)))
            else:
                decays.append(w.assign_sub(decay * w))
        with tf.control_dependencies(decays):
            return v1.train.AdamOptimizer(rate, **betas, name="AdamW").apply_gradients(pairs)
    return train


def zeros_like(w, name):
    with v1.variable_scope(w.op.name):
        return v1.get_variable(name, initializer=np.zeros(w.shape, np.float32), use_resource=True)


def ratio_or_1(above, below, ratio):
    return tf.where((above > 0) & (below > 0), ratio, 1.0)


def lars(rate, momentum=0.9, decay=1e-4, eeta=0.001, nesterov=False):
    """You et al. 2017, algorithm 1."""
    def train(pairs, _step):
        updates = []
        for g, w in pairs:
            a = zeros_like(w, "LARSOptimizer")
            w_norm, g_norm = tf.norm(w), tf.norm(g)
            scaled = rate * ratio_or_1(w_norm, g_norm, eeta * w_norm / (g_norm + decay * w_norm)) * (g + decay * w)
            total = momentum * a + scaled
            updates += [a.assign(total), w.assign_sub(momentum * total + scaled if nesterov else total)]
        return tf.group(updates)
    return train


def lamb(rate, decay, beta1=0.9, beta2=0.999, epsilon=1e-6):
    """You et al. 2019, algorithm 2."""
    def train(pairs, step):
        updates, t = [], tf.cast(step + 1, tf.float64)
        corrections = [tf.cast(1 - tf.constant(beta, tf.float64) ** t, tf.float32) for beta in (beta1, beta2)]
        for g, w in pairs:
            m, v = zeros_like(w, "LAMB"), zeros_like(w, "LAMB_1")
            m_new, v_new = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            d = m_new / corrections[0] / (tf.sqrt(v_new / corrections[1]) + epsilon) + decay * w
            ratio = ratio_or_1(tf.norm(w), tf.norm(d), tf.norm(w) / tf.norm(d))
            updates += [m.assign(m_new), v.assign(v_new), w.assign_sub(rate(step) * ratio * d)]
        return tf.group(updates)
    return train


def warmed_up(rate, steps, then):
    return lambda step: tf.where(step < steps, rate * tf.cast(step + 1, tf.float32) / steps, then(step - steps))


def dense_cases():
    train = v1.train

    def descent(rate):
        return tf1(lambda step: train.GradientDescentOptimizer(rate(step)))

    yield Case("gradient_descent", dtf.GradientDescent(0.1), descent(lambda _: 0.1))
    yield Case("gradient_descent, L2", dtf.GradientDescent(0.1, weight_decay=0.05), prepared(l2(0.05), descent(lambda _: 0.1)))
    yield Case("gradient_descent, clip_by_value", dtf.GradientDescent(0.1), prepared(clipped_by_value(0.5), descent(lambda _: 0.1)),
               settings={"clip_by_value": 0.5})
    yield Case("gradient_descent, clip_by_global_norm", dtf.GradientDescent(0.1),
               prepared(clipped_by_global_norm(5.0), descent(lambda _: 0.1)), settings={"clip_by_global_norm": 5.0})
    for staircase in (False, True):
        yield Case(f"exponential_decay, staircase={staircase}", dtf.GradientDescent(dtf.exponential_decay(0.2, 4, 0.7, staircase)),
                   descent(lambda step, s=staircase: train.exponential_decay(0.2, step, 4, 0.7, s)))
    for cycle in (False, True):
        yield Case(f"polynomial_decay, cycle={cycle}", dtf.GradientDescent(dtf.polynomial_decay(0.2, 10, 0.01, 2.0, cycle)),
                   descent(lambda step, c=cycle: train.polynomial_decay(0.2, step, 10, 0.01, 2.0, c)))
    yield Case("cosine_decay", dtf.GradientDescent(dtf.cosine_decay(0.2, 20, 0.1)),
               descent(lambda step: train.cosine_decay(0.2, step, 20, 0.1)))
    yield Case("cosine_decay, warmup", dtf.GradientDescent(dtf.cosine_decay(0.2, 15).warmup(5)),
               descent(warmed_up(0.2, 5, lambda step: train.cosine_decay(0.2, step, 15))))
    for nesterov in (False, True):
        yield Case(f"momentum, use_nesterov={nesterov}", dtf.Momentum(0.02, momentum=0.9, use_nesterov=nesterov),
                   tf1(lambda _, n=nesterov: train.MomentumOptimizer(0.02, 0.9, use_nesterov=n)))
        yield Case(f"momentum, use_nesterov={nesterov}, Keras", dtf.Momentum(0.02, momentum=0.9, use_nesterov=nesterov),
                   Keras(lambda n=nesterov: tf.keras.optimizers.SGD(0.02, 0.9, n)))
    yield Case("momentum, L2, exponential_decay", dtf.Momentum(dtf.exponential_decay(0.05, 5, 0.5), momentum=0.9, weight_decay=0.01),
               prepared(l2(0.01), tf1(lambda step: train.MomentumOptimizer(train.exponential_decay(0.05, step, 5, 0.5), 0.9))))
    yield Case("adagrad", dtf.Adagrad(0.1), tf1(lambda _: train.AdagradOptimizer(0.1)))
    yield Case("adagrad, initial_accumulator_value", dtf.Adagrad(0.1, initial_accumulator_value=0.5),
               tf1(lambda _: train.AdagradOptimizer(0.1, 0.5)))
    yield Case("adadelta", dtf.Adadelta(1.0), tf1(lambda _: train.AdadeltaOptimizer(1.0)), scale=1e-3)
    yield Case("adadelta, rho, epsilon", dtf.Adadelta(0.5, rho=0.8, epsilon=1e-3), tf1(lambda _: train.AdadeltaOptimizer(0.5, 0.8, 1e-3)))
    yield Case("adam", dtf.Adam(0.01), tf1(lambda _: train.AdamOptimizer(0.01)))
    yield Case("adam, Keras", dtf.Adam(0.01, epsilon=1e-7, **BETAS),
               Keras(lambda: tf.keras.optimizers.Adam(0.01, BETAS["beta1"], BETAS["beta2"])))
    yield Case("adam, betas, epsilon, L2", dtf.Adam(0.02, beta1=0.5, beta2=0.9, epsilon=1e-3, weight_decay=0.01),
               prepared(l2(0.01), tf1(lambda _: train.AdamOptimizer(0.02, 0.5, 0.9, 1e-3))), without="")
    yield Case("adam, slots", dtf.Adam(0.01, **BETAS), tf1(lambda _: train.AdamOptimizer(0.01, **BETAS)), without="")
    yield Case("adam, clip_by_global_norm, moving average", dtf.Adam(0.01),
               averaged(0.9, prepared(clipped_by_global_norm(2.0), tf1(lambda _: train.AdamOptimizer(0.01)))),
               settings={"clip_by_global_norm": 2.0, "moving_average_decay": 0.9})
    yield Case("adamw", dtf.AdamW(0.01, weight_decay=2.0), adamw_of_contrib(0.01, 0.02))
    yield Case("adamw, slots", dtf.AdamW(0.01, weight_decay=2.0, **BETAS), adamw_of_contrib(0.01, 0.02, **BETAS), without="")
    yield Case("adamw, Keras", dtf.AdamW(0.01, epsilon=1e-7, weight_decay=2.0, **BETAS),
               Keras(lambda: tf.keras.optimizers.AdamW(0.01, 2.0, BETAS["beta1"], BETAS["beta2"])))
    yield Case("rmsprop", dtf.RmsProp(0.01), tf1(lambda _: train.RMSPropOptimizer(0.01)))
    yield Case("rmsprop, decay, momentum, epsilon", dtf.RmsProp(0.01, decay=0.7, momentum=0.5, epsilon=1e-3),
               tf1(lambda _: train.RMSPropOptimizer(0.01, 0.7, 0.5, 1e-3)))
    yield Case("rmsprop, centered", dtf.RmsProp(0.01, momentum=0.5, centered=True),
               tf1(lambda _: train.RMSPropOptimizer(0.01, momentum=0.5, centered=True)))
    yield Case("ftrl", dtf.Ftrl(0.1), tf1(lambda _: train.FtrlOptimizer(0.1)))
    yield Case("ftrl, regularized", dtf.Ftrl(0.1, initial_accumulator_value=0.3, l1_regularization_strength=0.5,
                                             l2_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.2),
               tf1(lambda _: train.FtrlOptimizer(0.1, -0.5, 0.3, 0.5, 0.1, l2_shrinkage_regularization_strength=0.2)))
    yield Case("ftrl, learning_rate_power", dtf.Ftrl(0.1, learning_rate_power=-0.3, l1_regularization_strength=0.1),
               tf1(lambda _: train.FtrlOptimizer(0.1, -0.3, l1_regularization_strength=0.1)))
    for nesterov in (False, True):
        yield Case(f"lars, use_nesterov={nesterov}", dtf.Lars(5.0, use_nesterov=nesterov), lars(5.0, nesterov=nesterov))
    yield Case("lamb, Keras", dtf.Lamb(0.01), Keras(lambda: tf.keras.optimizers.Lamb(0.01, epsilon=1e-6)))
    yield Case("lamb, weight_decay, polynomial_decay", dtf.Lamb(dtf.polynomial_decay(0.02, 20), weight_decay=0.1),
               lamb(lambda step: train.polynomial_decay(0.02, step, 20), 0.1))


def sparse_cases():
    train = v1.train

    def case(name, ours, theirs, rows="repeated", **more):
        return Case(f"rows: {name}", ours, theirs, rows=rows, **more)

    def descent(_step):
        return train.GradientDescentOptimizer(0.1)

    yield case("gradient_descent", dtf.GradientDescent(0.1), tf1(descent))
    yield case("gradient_descent, L2", dtf.GradientDescent(0.1, weight_decay=0.05), prepared(l2(0.05), tf1(descent)))
    # TensorFlow clips before it adds the gradients of a row that is read twice.
    yield case("gradient_descent, clip_by_value", dtf.GradientDescent(0.1), prepared(clipped_by_value(0.5), tf1(descent)),
               rows="distinct", settings={"clip_by_value": 0.5})
    yield case("gradient_descent, clip_by_global_norm", dtf.GradientDescent(0.1), prepared(clipped_by_global_norm(5.0), tf1(descent)),
               rows="distinct", settings={"clip_by_global_norm": 5.0})
    for nesterov in (False, True):
        yield case(f"momentum, use_nesterov={nesterov}", dtf.Momentum(0.05, momentum=0.9, use_nesterov=nesterov),
                   tf1(lambda _, n=nesterov: train.MomentumOptimizer(0.05, 0.9, use_nesterov=n)))
    yield case("momentum, moving average", dtf.Momentum(0.05, momentum=0.9),
               averaged(0.8, tf1(lambda _: train.MomentumOptimizer(0.05, 0.9))), settings={"moving_average_decay": 0.8})
    yield case("adagrad", dtf.Adagrad(0.1), tf1(lambda _: train.AdagradOptimizer(0.1)))
    yield case("adadelta", dtf.Adadelta(1.0), tf1(lambda _: train.AdadeltaOptimizer(1.0)), scale=1e-3)
    yield case("adam", dtf.Adam(0.01), tf1(lambda _: train.AdamOptimizer(0.01)))
    yield case("adam, slots", dtf.Adam(0.01, **BETAS), tf1(lambda _: train.AdamOptimizer(0.01, **BETAS)), without="")
    yield case("adamw", dtf.AdamW(0.01, weight_decay=2.0), adamw_of_contrib(0.01, 0.02))
    yield case("adamw, slots", dtf.AdamW(0.01, weight_decay=2.0, **BETAS), adamw_of_contrib(0.01, 0.02, **BETAS), without="")
    yield case("rmsprop, momentum", dtf.RmsProp(0.02, momentum=0.5), tf1(lambda _: train.RMSPropOptimizer(0.02, momentum=0.5)))
    yield case("rmsprop, centered", dtf.RmsProp(0.02, centered=True), tf1(lambda _: train.RMSPropOptimizer(0.02, centered=True)))
    yield case("ftrl, regularized", dtf.Ftrl(0.1, l1_regularization_strength=0.2, l2_regularization_strength=0.1,
                                             l2_shrinkage_regularization_strength=0.2),
               tf1(lambda _: train.FtrlOptimizer(0.1, l1_regularization_strength=0.2, l2_regularization_strength=0.1,
                                                 l2_shrinkage_regularization_strength=0.2)))


def networks():
    train = v1.train
    yield Network("momentum", dtf.Momentum(0.1, momentum=0.9), tf1(lambda _: train.MomentumOptimizer(0.1, 0.9)))
    yield Network("adagrad", dtf.Adagrad(0.1), tf1(lambda _: train.AdagradOptimizer(0.1)))
    yield Network("adam", dtf.Adam(0.01, epsilon=1e-3), tf1(lambda _: train.AdamOptimizer(0.01, epsilon=1e-3)))


def main(library, word=""):
    global dtf
    os.environ["DTF_LIBRARY"] = str(pathlib.Path(library).resolve())
    sys.path.insert(0, str(pathlib.Path(os.environ["DTF_SOURCE_ROOT"]) / "common/api/python"))
    import dtf
    optimizers = {kind for kind in vars(dtf).values() if isinstance(kind, type) and issubclass(kind, dtf.Optimizer) and kind.name}
    failed, compared = [], {}
    for case in [*dense_cases(), *sparse_cases(), *networks()]:
        kind = type(case.ours)
        compared.setdefault(kind, 0.0)
        if word in case.name:
            error, variable = case.difference()
            print(f"{error:.2e}  {case.name}: {variable}", flush=True)
            compared[kind] = max(compared[kind], error)
            if not error <= BOUND:
                failed.append(case.name)
    lacking = optimizers - set(compared)
    assert not lacking, f"no case of {', '.join(one.__name__ for one in lacking)}: add one beside TensorFlow's"
    print("\n".join(f"{error:.2e}  the most of {kind.__name__}" for kind, error in compared.items()))
    assert not failed, f"differ by more than {BOUND:g} from TensorFlow {tf.__version__}'s: {'; '.join(failed)} (seed {SEED})"
    print(f"all as TensorFlow {tf.__version__} has them, within {BOUND:g} after {STEPS} steps (seed {SEED})")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
