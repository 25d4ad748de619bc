"""DFlash servers: fetch, check, plan, start, supervise, prove, measure."""

__version__ = "0.1.0"
