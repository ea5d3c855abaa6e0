#pragma once

// The jobs for arrays of NumPy and for folders of images: a convolutional network for images, an
// LSTM for sequences, hidden layers for records of numbers.

#include "launcher/init/dataset_profile.h"
#include "launcher/init/job_draft.h"

namespace dtf::launcher {

JobDraft arraysJob(const ArraysProfile& profile, const JobPlace& place);
JobDraft imagesJob(const ImagesProfile& profile, const JobPlace& place);

}  // namespace dtf::launcher
