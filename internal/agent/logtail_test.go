package agent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/load"
)

// The log of an agent can be fetched: which loads ran, on what, and how they ended.
func TestLogTellsOfLoads(t *testing.T) {
	g := newScripted()
	var passedOn bytes.Buffer
	p := connect(t, newTestServer(t, g, func(o *Options) { o.Log = &passedOn }), client.Options{})
	close(g.tick)
	if err := p.client.Run(t.Context(), workload(), newCollector()); err != nil {
		t.Fatal(err)
	}
	g.prepareErr = load.ErrLost
	if err := p.client.Run(t.Context(), workload(), newCollector()); err == nil {
		t.Error("the second load should have failed")
	}
	lost := "OLTP 1: ended: " + load.ErrLost.Error()
	var text []byte
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		// The client learns of the end before the agent has noted it.
		var err error
		if text, err = p.client.Log(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), lost) || time.Now().After(until) {
			break
		}
	}
	at := 0
	for _, part := range []string{
		`agent 1.2.3 of VM "DB-0001", process `, "OLTP 1: preparing\n", "OLTP 1: running scripted, from cards\n", "OLTP 1: ended\n",
		"OLTP 1: preparing\n", lost,
	} {
		i := strings.Index(string(text[at:]), part)
		if i < 0 {
			t.Fatalf("%q is missing in its place in\n%s", part, text)
		}
		at += i
	}
	if passedOn.String() != string(text) {
		t.Errorf("passed on %q", passedOn.String())
	}
}

// A log that never ends keeps its end, in whole lines, within one answer.
func TestLogTailIsBounded(t *testing.T) {
	var d logTail
	for i := range 100_000 {
		fmt.Fprintf(&d, "line %d\n", i)
	}
	text := d.text()
	if len(text) > tailBytesMax+100 || len(text) > wire.ReplyBytesMax {
		t.Errorf("%d bytes are kept", len(text))
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "(earlier lines were not kept)" || !strings.HasPrefix(lines[1], "line ") || lines[len(lines)-2] != "line 99999" {
		t.Errorf("kept %q, %q … %q", lines[0], lines[1], lines[len(lines)-2])
	}
	fmt.Fprint(&d, strings.Repeat("x", 2*tailBytesMax))
	if n := len(d.text()); n > tailBytesMax+100 {
		t.Errorf("one long line: %d bytes are kept", n)
	}
}
