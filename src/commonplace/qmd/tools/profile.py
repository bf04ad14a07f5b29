"""The qmd profile: six tools, a resource and a prompt."""

from __future__ import annotations

from commonplace.qmd.tools.prompt import PROMPTS
from commonplace.qmd.tools.resources import RESOURCES
from commonplace.qmd.tools.status import instructions
from commonplace.qmd.tools.tools import TOOLS
from commonplace.tools.profile import Profile

PROFILE = Profile("qmd", TOOLS, instructions, resources=RESOURCES, prompts=PROMPTS)
