//go:build !linux || (!amd64 && !arm64)

package ioengine

const chainsPossible = false

// chain is not there: operations are done one by one.
type chain struct{ left, length int }

func newChain([]slot, int64) *chain { return nil }

func (c *chain) add([]int32)                 {}
func (c *chain) run([]completion, int64) int { return 0 }
func (c *chain) cancel([]completion) int     { return 0 }
func (c *chain) tired() bool                 { return false }
func (c *chain) rest()                       {}
