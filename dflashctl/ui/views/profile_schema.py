"""profile schema: the document, as it is."""

from dflashctl.ui.views.profile_show import render

__all__ = ["render"]
