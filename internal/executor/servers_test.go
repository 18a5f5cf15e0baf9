package executor

import (
	"errors"
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// A client that fails names its server, which may be the cause; one whose own agent was lost, or whose server never answered, does not.
func TestFailureNamesServer(t *testing.T) {
	server := &member{vm: target.VM{Name: "db-0001"}}
	missing := &member{vm: target.VM{Name: "db-0002"}, err: errors.New("no data")}
	lost := fmt.Errorf("agent lost: %w", load.ErrLost)
	for _, c := range []struct {
		serving []*member
		err     error
		want    string
	}{
		{nil, errors.New("exit status 1"), "exit status 1"},
		{[]*member{server}, errors.New("exit status 1"), `with its server on vm "db-0001": exit status 1`},
		{[]*member{server}, lost, lost.Error()},
		{[]*member{missing}, errors.New("exit status 1"), "exit status 1"},
		{[]*member{server, missing}, errors.New("exit status 1"), "exit status 1"},
	} {
		m := &member{vm: target.VM{Name: "client-0001"}, serving: c.serving, err: c.err}
		if m.nameServer(); m.err.Error() != c.want || !errors.Is(m.err, c.err) {
			t.Errorf("%v with %d servers: %v, want %s", c.err, len(c.serving), m.err, c.want)
		}
	}
}
