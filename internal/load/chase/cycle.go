package chase

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
	"unsafe"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/memory"
)

// cycle is one working set: each of its lines holds the address of the next one, and all lines are one cycle.
type cycle struct {
	region *memory.Region
	lines  int64
	at     unsafe.Pointer // where the walk is
}

// newCycle links the lines of a working set in random order. Sattolo's algorithm makes a single cycle: a permutation could have
// short ones, and the walk would stay in a few lines.
func newCycle(ctx context.Context, size int64, huge bool, key uint64) (*cycle, error) {
	r, err := memory.Map(size, huge)
	if err != nil {
		return nil, err
	}
	c := &cycle{region: r, lines: size / memory.Line}
	bytes := r.Bytes()
	next := func(line int64) []byte { return bytes[line*memory.Line : line*memory.Line+8] }
	for i := range c.lines {
		binary.NativeEndian.PutUint64(next(i), uint64(i))
	}
	for i := c.lines - 1; i > 0; i-- {
		j := int64(load.DrawBelow(key, uint64(i), uint64(i)))
		a, b := next(i), next(j)
		x, y := binary.NativeEndian.Uint64(a), binary.NativeEndian.Uint64(b)
		binary.NativeEndian.PutUint64(a, y)
		binary.NativeEndian.PutUint64(b, x)
		if i%stepLines == 0 && ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
	}
	base := uint64(uintptr(unsafe.Pointer(&bytes[0])))
	for i := range c.lines {
		binary.NativeEndian.PutUint64(next(i), base+binary.NativeEndian.Uint64(next(i))*memory.Line)
	}
	c.at = unsafe.Pointer(&bytes[0])
	return c, nil
}

// stepLines is how many accesses are done before the walk looks whether it should end.
const stepLines = 1 << 16

// walk follows the cycle for some accesses, which are a multiple of 8. It needs one load at a time: no address is known before.
//
//go:noinline
func walk(at unsafe.Pointer, accesses int64) unsafe.Pointer {
	for ; accesses > 0; accesses -= 8 {
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
		at = *(*unsafe.Pointer)(at)
	}
	return at
}

// errLost means that the walk did not take the steps that it should.
var errLost = errors.New("the walk through memory did not end where it must: an access was left out, or memory changed")

// pass walks and returns how long it took. A walk of whole cycles must end where it began; stopped before, it was not long enough.
func (c *cycle) pass(ctx context.Context, accesses int64) (took time.Duration, err error) {
	from, began := c.at, time.Now()
	done := int64(0)
	for ; done < accesses && ctx.Err() == nil; done += min(stepLines, accesses-done) {
		c.at = walk(c.at, min(stepLines, accesses-done))
	}
	took = time.Since(began)
	if (c.at == from) != (done%c.lines == 0) {
		return took, errLost
	}
	if ctx.Err() != nil && done < accesses {
		return took, context.Cause(ctx)
	}
	return took, nil
}

func (c *cycle) close() error {
	if c == nil {
		return nil
	}
	return c.region.Close()
}
