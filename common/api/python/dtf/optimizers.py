"""The optimizers of Graph.minimize(), with the names and settings of TensorFlow 1.

A setting that is left out has the default that a job's file has: `dtf-launch --help-config train.optimizer.adam`.
"""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Mapping, Optional, Union

if TYPE_CHECKING:
    from .graph import Minimized, Output


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else repr(float(value))


def settings_text(begin: str, settings: Mapping[str, Any]) -> str:
    """Returns "begin name=value ...", without the settings that are None."""
    return " ".join([begin, *(f"{name}={_number(value)}" for name, value in settings.items() if value is not None)])


@dataclasses.dataclass(frozen=True)
class LearningRate:
    """A rate, or a schedule by the global step that starts with it."""
    initial: float
    schedule: str = ""

    def warmup(self, steps: int) -> LearningRate:
        """Linear up to the rate within `steps`; the schedule counts from there."""
        return LearningRate(self.initial, f"{self.schedule} warmup_steps={steps}".strip())


def exponential_decay(learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False) -> LearningRate:
    """learning_rate * decay_rate ** (step / decay_steps), in whole decay_steps with `staircase`."""
    return LearningRate(learning_rate, settings_text("schedule=exponential", {
        "decay_steps": decay_steps, "decay_rate": float(decay_rate), "staircase": staircase}))


def polynomial_decay(learning_rate: float, decay_steps: int, end_learning_rate: float = 0.0001, power: float = 1.0,
                     cycle: bool = False) -> LearningRate:
    """(learning_rate - end)(1 - step / decay_steps) ** power + end; with `cycle` again and again, longer."""
    return LearningRate(learning_rate, settings_text("schedule=polynomial", {
        "decay_steps": decay_steps, "end": float(end_learning_rate), "power": float(power), "cycle": cycle}))


def cosine_decay(learning_rate: float, decay_steps: int, alpha: float = 0.0) -> LearningRate:
    """Half a wave from learning_rate to alpha * learning_rate."""
    return LearningRate(learning_rate, settings_text("schedule=cosine", {"decay_steps": decay_steps, "alpha": float(alpha)}))


Rate = Optional[Union[float, LearningRate]]
Setting = Optional[float]


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The base of the optimizers, each a value."""
    learning_rate: Rate = None
    name: ClassVar[str] = ""

    def text(self) -> str:
        """Returns the settings as dtf_graph_minimize() takes them: "adam learning_rate=0.001"."""
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        words = self.name
        rate = settings.pop("learning_rate")
        if isinstance(rate, LearningRate):
            words = f"{words} learning_rate={_number(rate.initial)} {rate.schedule}".strip()
        elif rate is not None:
            words = f"{words} learning_rate={_number(rate)}"
        return settings_text(words, settings)

    def minimize(self, loss: Output, global_step: Output | str = "global_step", **settings: Any) -> Minimized:
        """As Graph.minimize(), in TensorFlow's order."""
        return loss.graph.minimize(loss, self, global_step=global_step, **settings)


@dataclasses.dataclass(frozen=True)
class GradientDescent(Optimizer):
    weight_decay: Setting = None
    name: ClassVar[str] = "gradient_descent"


@dataclasses.dataclass(frozen=True)
class Momentum(Optimizer):
    momentum: Setting = None
    use_nesterov: Optional[bool] = None
    weight_decay: Setting = None
    name: ClassVar[str] = "momentum"


@dataclasses.dataclass(frozen=True)
class Adagrad(Optimizer):
    initial_accumulator_value: Setting = None
    weight_decay: Setting = None
    name: ClassVar[str] = "adagrad"


@dataclasses.dataclass(frozen=True)
class Adadelta(Optimizer):
    rho: Setting = None
    epsilon: Setting = None
    weight_decay: Setting = None
    name: ClassVar[str] = "adadelta"


@dataclasses.dataclass(frozen=True)
class Adam(Optimizer):
    beta1: Setting = None
    beta2: Setting = None
    epsilon: Setting = None
    weight_decay: Setting = None
    name: ClassVar[str] = "adam"


@dataclasses.dataclass(frozen=True)
class AdamW(Adam):
    """`weight_decay` is required; each step subtracts it times the learning rate and the variable."""
    name: ClassVar[str] = "adamw"


@dataclasses.dataclass(frozen=True)
class RmsProp(Optimizer):
    decay: Setting = None
    momentum: Setting = None
    epsilon: Setting = None
    centered: Optional[bool] = None
    weight_decay: Setting = None
    name: ClassVar[str] = "rmsprop"


@dataclasses.dataclass(frozen=True)
class Ftrl(Optimizer):
    """No schedule: the formula needs one rate."""
    learning_rate_power: Setting = None
    initial_accumulator_value: Setting = None
    l1_regularization_strength: Setting = None
    l2_regularization_strength: Setting = None
    l2_shrinkage_regularization_strength: Setting = None
    name: ClassVar[str] = "ftrl"


@dataclasses.dataclass(frozen=True)
class Lars(Optimizer):
    momentum: Setting = None
    weight_decay: Setting = None
    eeta: Setting = None
    epsilon: Setting = None
    use_nesterov: Optional[bool] = None
    name: ClassVar[str] = "lars"


@dataclasses.dataclass(frozen=True)
class Lamb(Optimizer):
    beta1: Setting = None
    beta2: Setting = None
    epsilon: Setting = None
    weight_decay: Setting = None
    name: ClassVar[str] = "lamb"
