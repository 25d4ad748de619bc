"""Rules: what SGLang does with a combination of options, as data, told before the start."""

from dflashctl.engines.sglang.rules.apply import ALL_RULES, judge
from dflashctl.engines.sglang.rules.rule import Rule

__all__ = ["ALL_RULES", "Rule", "judge"]
