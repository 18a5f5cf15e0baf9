package libvirt

import (
	"errors"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// On a host without events, the moment of a stop is when it was noticed.
func TestHostWithoutEvents(t *testing.T) {
	t.Parallel()
	run, vm := hostWith(t, false, "shut off (crashed)")
	l, err := prepare(target.Config{Nodes: []target.NodeConfig{{ID: "n", Endpoint: "qemu:///system"}}}, target.OpenOptions{}, run)
	if err != nil {
		t.Fatal(err)
	}
	l.listen()
	l.listen()
	began := time.Now()
	l.listener.Heard(vm.ID)
	var stopped *target.StoppedError
	if err := l.mayAnswer(t.Context(), vm, true); !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	if stopped.At.Before(began) || stopped.Uncertain <= 0 || stopped.Uncertain > time.Since(began) {
		t.Errorf("it stopped at %v, %v uncertain", stopped.At, stopped.Uncertain)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	l.listen() // has no effect any more
}
