//go:build !linux || (!amd64 && !arm64)

package backend

const ChainsPossible = false

// Chain is not there: operations are done one by one.
type Chain struct{ Left, Length int }

func NewChain([]Slot, int64) *Chain { return nil }

func (c *Chain) Add([]int32)                 {}
func (c *Chain) Run([]Completion, int64) int { return 0 }
func (c *Chain) Cancel([]Completion) int     { return 0 }
func (c *Chain) Tired() bool                 { return false }
func (c *Chain) Rest()                       {}
