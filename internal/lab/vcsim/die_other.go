//go:build !linux

package vcsim

import "syscall"

func dieWithThis() *syscall.SysProcAttr { return nil }
