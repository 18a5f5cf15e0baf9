package run

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestBrokenOff(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(breakOff{"stopped by the user"})
	beside, fail := context.WithCancelCause(t.Context())
	fail(errors.New("branch 2: disk full"))
	lost := errors.New("host lost")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{stopped, stopped.Err(), "broken off: stopped by the user"},
		{stopped, context.Cause(stopped), "broken off: stopped by the user"},
		{stopped, fmt.Errorf("power on vm %q: %w", "a", stopped.Err()), `power on vm "a": broken off: stopped by the user`},
		{stopped, fmt.Errorf("power on vm %q: %w", "a", context.Cause(stopped)), `power on vm "a": broken off: stopped by the user`},
		{stopped, errors.Join(stopped.Err(), lost), "context canceled\nhost lost; broken off: stopped by the user"},
		{stopped, lost, "host lost"},
		{beside, beside.Err(), "broken off: branch 2: disk full"},
		{t.Context(), context.Canceled, "context canceled"},
	} {
		if got := brokenOff(c.ctx, c.err); got.Error() != c.want {
			t.Errorf("%q becomes %q, want %q", c.err, got, c.want)
		}
	}
	if brokenOff(stopped, nil) != nil {
		t.Error("no error became one")
	}
}
