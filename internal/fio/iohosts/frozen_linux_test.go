package iohosts_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// A host that is frozen is given up after a while and the others go on; when it wakes up, it ends.
func TestFrozenHost(t *testing.T) {
	r := newRig(t, 2).jobs(t, strings.Replace(endless, "600", "20", 1))
	r.options.Silence = 8 * time.Second
	var frozen []int
	r.whenRunning(func() {
		sessions := r.Sessions(1)
		last := sessions[len(sessions)-1]
		frozen = append(frozen, last)
		if err := syscall.Kill(last, syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
	})
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	if lost := clients.Hosts[1]; lost.Err == nil || !strings.Contains(lost.Err.Error(), "no message from it for") {
		t.Errorf("the frozen host: %v", lost.Err)
	}
	if other := clients.Hosts[0]; other.Err != nil || other.Report.Rows[0].Directions[interval.Read].Operations < 5000 {
		t.Errorf("the other host: %v", other.Err)
	}
	for _, id := range frozen {
		if err := syscall.Kill(id, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	r.clean(t)
}
