package iohosts

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

func number[T any](v T) *T { return &v }

var messages = []message{
	{Say: number("laying out")}, {Ready: &ready{Phase: 1, Faults: []*fioreport.WireError{{Wire: diag.Wire{Message: "no", Exit: 69}}}}},
	{Progress: &fioreport.Report{Done: true, Elapsed: time.Second, Disks: []fioreport.Disk{{Name: "sda", Reads: 7}}}},
	{Periods: &periods{Row: 1, From: 2, List: []fioreport.Period{{EndNanos: 500, LengthNanos: 500}}}}, {Fault: &fioreport.WireError{Wire: diag.Wire{Message: "no"}}},
	{End: &struct{}{}}, {Start: &start{Phase: 1, UptimeNanos: 5}}, {Stop: &struct{}{}},
	{Jobs: &order{Host: 1, Name: "a", Jobs: Jobs{
		Inputs: []fiojob.Input{{Name: "f", Text: "[a]\n"}, {Words: []string{"--rw=read"}}}, Reading: syntax.Strict, Sections: []string{"a"},
		Env: map[string]string{"A": "b"}, Files: map[string]string{"x": "y"}, Backend: "null", Sample: time.Second, DropAfter: time.Millisecond, SameSeed: true,
		Devices: []Device{{Host: "a", Path: "/dev/sdb", Consent: blockdev.Consent{Serial: "s", Overwrite: []string{"ext4"}}}},
	}}},
}

func TestMessagesTravel(t *testing.T) {
	for _, m := range messages {
		text, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(text)
		if err != nil || !reflect.DeepEqual(*got, m) {
			t.Errorf("%s arrives as %+v, %v", text, got, err)
		}
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `{"say":"a","stop":{}}`, `{"start":{"at_uptime_ns":-1}}`, `{"start":{"at_uptime_ns":9223372036854775807}}`, `{"periods":{"row":-1}}`, `{"periods":{"row":70000}}`, `{"periods":{"from":-1}}`,
		`{"periods":{"row":0,"list":[{"l":-1}]}}`, `{"ready":{"phase":-1}}`, `{"progress":{"Rows":[{"Runtime":-1}]}}`,
		`{"periods":{"list":[` + strings.TrimSuffix(strings.Repeat("{},", periodsChunk+1), ",") + `]}}`,
	} {
		if m, err := decode([]byte(text)); err == nil {
			t.Errorf("%.60s is read as %+v", text, m)
		}
	}
}

// FuzzMessage feeds what could come over the wire into both the reader and what the controller makes of it.
func FuzzMessage(f *testing.F) {
	for _, m := range messages {
		text, err := json.Marshal(&m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"progress":{"Rows":[{"Name":"a","Clones":1,"StartNanos":5,"Runtime":9,"Directions":[{"Operations":3,"Runtime":9,` +
		`"Service":{"n":3,"sum":501,"sq":110201,"min":100,"max":300,"b":"DwaGu"}}]}]}}`))
	f.Add([]byte(`{"periods":{"row":3,"from":9,"list":[{"e":1,"l":1,"o":[1,2,3],"b":[4,5,6]}]}}`))
	jobs := make([]fiojob.Job, 2)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decode(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%s is read and cannot be written: %v", text, err)
		}
		if _, err := decode(again); err != nil {
			t.Errorf("%s is read, and not as it is written again: %v\n%s", text, err, again)
		}
		one := &member{jobs: jobs}
		c := controller{phase: 0, options: &Options{}}
		c.members = []*member{one, {jobs: jobs}}
		for _, to := range c.members {
			c.take(event{member: to, message: m})
			more, err := decode([]byte(`{"progress":{"Rows":[{},null,{"JobIndex":1},{"JobIndex":1}]}}`))
			if err != nil {
				t.Fatal(err)
			}
			c.take(event{member: to, message: more})
		}
		clients := c.report(true)
		_ = clients.WriteJSON(discard{}, fioreport.Labels{})
		_ = clients.WriteText(discard{})
		_ = clients.WriteTerse(discard{}, fioreport.Terse{})
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
