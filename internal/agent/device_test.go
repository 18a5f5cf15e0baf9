//go:build linux

package agent_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/builtin"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// Consent travels with the workload, the agent looks at the device on its own machine, and its refusal arrives with all
// that was found.
func TestConsentThroughAnAgent(t *testing.T) {
	testreq.Program(t, "mkfs.ext4")
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- agent.Serve(context.Background(), far, agent.Options{Generators: builtin.Generators().ByName(), VM: "group-0001"})
	}()
	client := client.New(near, client.Options{})
	defer func() {
		if err := errors.Join(client.Close(), <-served); err != nil {
			t.Error(err)
		}
	}()
	for _, generator := range []string{"native", "fio"} {
		for _, c := range loadtest.DeviceCases() {
			t.Run(generator+"/"+c.Title, func(t *testing.T) {
				if generator == "fio" {
					testreq.Program(t, "fio")
				}
				testConsent(t, client, generator, c)
			})
		}
	}
}

func testConsent(t *testing.T, client *client.Client, generator string, c loadtest.DeviceCase) {
	w := c.Workload(t, "[job]\nfilename=/dev/sdb\nrw=write\nbs=64k\nsize=1m\noffset=2m\ndirect=1\nioengine=libaio\n")
	w.Generator = generator
	before, err := os.ReadFile(w.Devices[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	err = client.Run(t.Context(), w, &log)
	after, readErr := os.ReadFile(w.Devices[0].Path)
	if readErr != nil {
		t.Fatal(readErr)
	}
	written := string(before) != string(after)
	if c.Want == nil {
		if n := loadtest.Add(log.Intervals()).Directions[1].Operations; err != nil || n != 16 || !written {
			t.Errorf("%v, %d writes, changed: %v", err, n, written)
		}
		return
	}
	var userErr *diag.Error
	if !errors.As(err, &userErr) || userErr.Code != "unsafe-device" || userErr.Exit != diag.ExitRefused || userErr.Hint == "" {
		t.Fatalf("%v, want a refusal for %v", err, c.Want)
	}
	words := map[string]string{
		"unproven": "nothing proves", "wrong-device": " and not ", "signature": "it carries", "data": "it is not empty",
		"mounted": "is mounted on", "swap": "in use as swap", "held": "is held by",
	}
	for _, code := range c.Want {
		if !strings.Contains(userErr.Message, words[code]) {
			t.Errorf("%q does not say %q", userErr.Message, words[code])
		}
	}
	if written || len(log.Intervals()) > 0 {
		t.Error("it was written to")
	}
}
