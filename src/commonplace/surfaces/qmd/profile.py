"""What the qmd profile serves: six tools, a resource and a prompt."""

from __future__ import annotations

from commonplace.surfaces.profile import Profile
from commonplace.surfaces.qmd.prompt import PROMPTS
from commonplace.surfaces.qmd.resources import RESOURCES
from commonplace.surfaces.qmd.status import instructions
from commonplace.surfaces.qmd.tools import TOOLS

PROFILE = Profile("qmd", TOOLS, instructions, resources=RESOURCES, prompts=PROMPTS)
