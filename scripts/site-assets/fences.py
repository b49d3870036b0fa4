"""For the Python reference: examples in docstrings, `>>> …`, are code."""

import re

import griffe

EXAMPLE = re.compile(r"(?m)(?:^(?:>>>|\.\.\.).*(?:\n|\Z))+")


class Fences(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(self.fenced, obj.docstring.value)

    @staticmethod
    def fenced(example):
        lines = [re.sub(r"^(>>>|\.\.\.) ?", "", line) for line in example[0].rstrip("\n").split("\n")]
        plain = [re.sub(r"\s*# doctest:.*", "", line) for line in lines]
        return "```python\n" + "\n".join(plain) + "\n```\n"
