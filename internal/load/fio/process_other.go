//go:build !linux

package fio

import (
	"os"
	"os/exec"
	"time"
)

// dieWithUs needs Linux; on other systems fio continues until it is stopped.
func dieWithUs(*exec.Cmd) {}

// widen leaves a pipe as it is.
func widen(*os.File) {}

// cpu returns 0: the CPU time of a running process is read on Linux only.
func (p *process) cpu() time.Duration { return 0 }
