package jinja

import (
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// budget has the limits of a rendering, and what it has used.
type budget struct {
	limits Limits
	steps  int
	paid   int // bytes
}

// limitError ends the rendering.
type limitError struct{ message string }

func (e limitError) Error() string { return e.message }

// endsRun reports whether an error already has its position, or ends the rendering regardless of it.
func endsRun(err error) bool {
	return errors.As(err, new(*syntax.Fault)) || errors.As(err, new(limitError))
}

// step counts one unit of work.
func (b *budget) step() error {
	if b.steps++; b.steps > b.limits.Steps {
		return limitError{fmt.Sprintf("the template takes more than %d steps", b.limits.Steps)}
	}
	return nil
}

// bytesPerStep is how much text one step may process.
const bytesPerStep = 64

// work counts steps that the next call of step checks.
func (b *budget) work(steps int) { b.steps += steps }

// workOn counts the steps of processing a value.
func (b *budget) workOn(v any) {
	switch v := v.(type) {
	case string:
		b.work(len(v) / bytesPerStep)
	case *list:
		b.work(len(v.items))
	case *dict:
		b.work(len(v.keys))
	}
}

// pay counts the memory of a value. It is never refunded, so the budget bounds all values of a rendering.
func (b *budget) pay(bytes int) error {
	if bytes < 0 || bytes > b.limits.ValueBytes-b.paid {
		return limitError{fmt.Sprintf("the values of the template take more than %d MiB", b.limits.ValueBytes>>20)}
	}
	b.paid += bytes
	return nil
}

func (b *budget) payTimes(size int, n int64) error {
	if size > 0 && n > int64(b.limits.ValueBytes)/int64(size) {
		n = int64(b.limits.ValueBytes)/int64(size) + 1
	}
	if size == 0 {
		return nil
	}
	return b.pay(size * int(n))
}

// text pays for a new text.
func (b *budget) text(s string) (any, error) { return s, b.pay(len(s)) }
