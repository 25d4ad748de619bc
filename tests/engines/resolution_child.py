"""Run by the light environment: what ServerArgs of the newest release makes of arguments, on GPUs that it is told of.

Each line of input: {"args": [...], "capability": [10, 3], "env": {...}}. Each line of output:
{"error": null or text, "said": [warnings], "resolved": {field: value}}.
"""

import importlib.util
import json
import logging
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if place != HERE]


class Kept(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def facts(capability):
    major, minor = capability
    return {
        "is_cuda": True,
        "is_sm90": major == 9,
        "is_sm100": major == 10,
        "is_sm120": major == 12,
        "is_blackwell": major in (10, 11, 12),
        "device_sm": major * 10 + minor,
    }


def graph_backend(config):
    prefill = config["prefill"] if isinstance(config, dict) else config.prefill
    backend = prefill["backend"] if isinstance(prefill, dict) else prefill.backend
    return str(getattr(backend, "value", backend))


def resolve(case, kept):
    import torch
    from sglang.srt.runtime_context import override_platform
    from sglang.srt.server_args import prepare_server_args

    kept.said.clear()
    os.environ.update(case["env"])
    torch.cuda.get_device_capability = lambda *_, **__: tuple(case["capability"])
    try:
        with override_platform(**facts(case["capability"])):
            args = prepare_server_args(case["args"])
            args.resolve_once()
            resolved = args.resolved_dict()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the answer
        return {"error": f"{type(error).__name__}: {error}", "said": kept.said, "resolved": {}}
    finally:
        for name in case["env"]:
            os.environ.pop(name, None)
    plain = {
        name: value
        for name, value in resolved.items()
        if isinstance(value, (str, int, float, bool, type(None)))
    }
    plain["cuda_graph_backend_prefill"] = graph_backend(resolved.get("cuda_graph_config"))
    return {"error": None, "said": kept.said, "resolved": plain}


def main(introspect):
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    introspect._lighten()
    kept = Kept()
    logging.getLogger("sglang").addHandler(kept)
    out.write("{}\n")
    for line in sys.stdin:
        out.write(json.dumps(resolve(json.loads(line), kept)) + "\n")


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("introspect", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main(module)
