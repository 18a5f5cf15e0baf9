#!/bin/sh
# apt-get update that waits while another apt has the lists locked. DPkg::Lock::Timeout is for installing alone: with it, update
# still ends at once (apt 2.6). $WAIT is for how many seconds, 600 without it.
set -u
until_second=$(($(date +%s) + ${WAIT:-600}))
while :; do
	said=$(LC_ALL=C apt-get update -qq 2>&1) && exit 0
	case $said in
	*"Could not get lock"* | *"Unable to lock directory"*) ;;
	*)
		printf '%s\n' "$said" >&2
		exit 1
		;;
	esac
	if [ "$(date +%s)" -ge "$until_second" ]; then
		printf '%s\n' "$said" >&2
		exit 1
	fi
	[ -n "${waiting:-}" ] || echo "another apt is running: waiting for it" >&2
	waiting=yes
	sleep 1
done
