#!/bin/sh
# Copies the licences of everything that is linked into the programs to a folder: licences.sh FOLDER
# Of each module the files beside its packages that are linked, and above them up to its root; of Go itself; and of what is vendored
# in this repository. A module without a licence is an error.
set -eu
out=$1
mkdir -p "$out"
go=${GO:-go}

copy() { # FROM-FOLDER TO-FOLDER: is there a licence?
	found=1
	for f in "$1"/LICEN[CS]E* "$1"/COPYING* "$1"/NOTICE* "$1"/PATENTS* "$1"/licen[cs]e*; do
		[ -f "$f" ] || continue
		case $f in *.go) continue ;; esac
		mkdir -p "$2"
		cp "$f" "$2/"
		chmod 644 "$2/${f##*/}"
		found=0
	done
	return $found
}

list=$($go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}' ./cmd/bragg ./cmd/bragg-agent ./cmd/bragg-lab)
printf '%s\n' "$list" | sort -u | while IFS='	' read -r module root dir; do
	[ -n "$module" ] || continue
	while [ "$dir" != "$root" ]; do
		copy "$dir" "$out/$module${dir#"$root"}" || true
		dir=${dir%/*}
	done
	copy "$root" "$out/$module" || [ -d "$out/$module" ] || {
		echo "licences: $module has none" >&2
		exit 1
	}
done
# Distributions keep the licence of Go elsewhere than in its own folder.
goroot=$($go env GOROOT)
copy "$goroot" "$out/go" || copy "$(dirname "$goroot")" "$out/go" || copy /usr/share/licenses/go "$out/go" || {
	for f in /usr/share/doc/golang*/copyright; do
		[ -f "$f" ] && mkdir -p "$out/go" && cp "$f" "$out/go/LICENSE" && break
	done
	[ -f "$out/go/LICENSE" ] || {
		echo "licences: Go itself ($goroot) has none" >&2
		exit 1
	}
}
find cmd internal -type f -iname 'licen[cs]e*' ! -name '*.go' | while read -r f; do
	mkdir -p "$out/vendored/${f%/*}"
	cp "$f" "$out/vendored/${f%/*}/"
done
