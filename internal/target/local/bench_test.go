package local_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// BenchmarkStart is the way of 16 VMs from nothing to agents that answer, and back.
func BenchmarkStart(b *testing.B) {
	l, err := local.Open(b.Context(), config(), target.OpenOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	tag := targettest.NewTag("r")
	for b.Loop() {
		vms, err := l.Create(b.Context(), tag, specs(16))
		if err == nil {
			err = l.PowerOnVMs(b.Context(), tag, vms)
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, vm := range vms {
			conn, err := l.DialAgent(b.Context(), vm)
			if err != nil {
				b.Fatal(err)
			}
			c := client.New(conn, client.Options{})
			if _, err := c.Hello(b.Context()); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
		b.StopTimer()
		if err := l.Delete(b.Context(), tag, vms); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
