#!/bin/sh
# Takes the picture of a report for README.md: readme-picture.sh BRAGG PICTURE [REPORT]
# Without a report it makes one: a real run of the demo in a folder that is removed. Needs Chromium.
set -eu
bragg=$(realpath "$1") picture=$(realpath -m "$2") report=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$report" ]; then
	"$bragg" demo --runs "$work/runs" >&2
	report=$(ls "$work"/runs/*/report.html)
fi
# The verdict and the first charts fit into a picture; what stands between them is left out of it.
sed -e '/http-equiv="Content-Security-Policy"/d' \
	-e '0,/<\/head>/s//<style>#validity,#scenario,#timeline,nav.contents{display:none!important}<\/style><\/head>/' "$report" >"$work/page.html"
timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1000,1000 \
	--virtual-time-budget=5000 --screenshot="$work/report.png" "file://$work/page.html" >"$work/said" 2>&1 || {
	cat "$work/said" >&2
	exit 1
}
bytes=$(stat -c %s "$work/report.png")
[ "$bytes" -lt 200000 ] || {
	echo "the picture has $bytes bytes, and 200000 are the limit" >&2
	exit 1
}
cp "$work/report.png" "$picture"
ls -l "$picture"
