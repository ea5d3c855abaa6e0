#include "common/wire/optimizer_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "common/base/error.h"

namespace dtf::wire {
namespace {

template <class Spoil>
cluster::OptimizerSpec roundTrip(const cluster::OptimizerSpec& spec, const Spoil& spoil) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::Optimizer>();
  encodeOptimizer(spec, root);
  spoil(root);
  return decodeOptimizer(root.asReader());
}

TEST(OptimizerCodec, EveryFieldArrivesAsItself) {
  cluster::OptimizerSpec spec;
  spec.kind = cluster::OptimizerSpec::Kind::kLamb;
  spec.schedule.kind = cluster::LearningRateSchedule::Kind::kCosine;
  int next = 1;  // a value of its own for each field, so that none can stand for another
  visitSettings(spec, [&](std::string_view, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(++next);
  });
  EXPECT_EQ(roundTrip(spec, [](auto&) {}), spec);
  for (const bool nesterov : {false, true}) {
    spec.use_nesterov = nesterov;
    spec.centered = spec.schedule.staircase = !nesterov;
    spec.schedule.cycle = nesterov;
    EXPECT_EQ(roundTrip(spec, [](auto&) {}), spec);
  }
}

TEST(OptimizerCodec, RefusesKindsAndNumbersThatAreNone) {
  const cluster::OptimizerSpec spec;
  EXPECT_NO_THROW(roundTrip(spec, [](auto& o) { o.setKind(10); }));
  EXPECT_THROW(roundTrip(spec, [](auto& o) { o.setKind(0); }), Error);
  EXPECT_THROW(roundTrip(spec, [](auto& o) { o.setKind(11); }), Error);
  EXPECT_THROW(roundTrip(spec, [](auto& o) { o.getSchedule().setKind(0); }), Error);
  EXPECT_THROW(roundTrip(spec, [](auto& o) { o.getSchedule().setKind(5); }), Error);
  EXPECT_THROW(roundTrip(spec,
                         [](auto& o) {
                           o.getSchedule().setAlpha(std::numeric_limits<double>::quiet_NaN());
                         }),
               Error);
  EXPECT_THROW(roundTrip(spec, [](auto& o) { o.setEeta(std::numeric_limits<double>::infinity()); }),
               Error);
}

}  // namespace
}  // namespace dtf::wire
