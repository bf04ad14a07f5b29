#!/bin/sh
# Build what a release publishes into dist/, and check it: `release.sh .venv/bin`. Nothing is uploaded; a tag does that (.github/workflows/release.yml).
set -eu
bin=$1
version=$("$bin/python" -c 'import commonplace; print(commonplace.__version__)')
grep -q "^## \\[$version\\]" CHANGELOG.md || { echo "CHANGELOG.md has no section [$version]. Write one, or correct __version__." >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "There are changes that no commit has. Commit them first." >&2; exit 1; }
rm -rf dist
"$bin/python" -m build --outdir dist . >/dev/null
"$bin/python" tools/check_install.py pip
ls -l dist
echo "Version $version is ready in dist/. To publish it: git tag v$version && git push origin v$version"
