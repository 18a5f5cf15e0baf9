//go:build !linux

package program

import (
	"os"
	"os/exec"
	"time"
)

const outputBytes = 1 << 20

// confine needs Linux; on other systems programs continue until they are stopped.
func (Command) confine(*exec.Cmd, bool) {}

// onFirstThread matters on Linux only.
func onFirstThread() bool { return false }

// ownMounts changes nothing.
func ownMounts(*os.File) (changed, own bool) { return false, false }

// mount is for Linux only.
func (Command) mount(bool) error { return nil }

// Widen leaves a pipe as it is.
func Widen(*os.File) {}

// cpuOf returns 0: the CPU time of a running process is read on Linux only.
func cpuOf(int) time.Duration { return 0 }

// FreeBefore keeps the space.
func FreeBefore(*os.File, int64) {}
