"""The dashboard for ``panel serve apps/dashboard.py``: pages of runs, live and recorded.

WORKBENCH_RUNS says which folders of runs it may open (default: ``runs``). Addresses need a token: it is printed when a
first page is asked for.
"""

from workbench.pages.session import show
from workbench.pages.site import site_of_environment

show(site_of_environment()).servable()
