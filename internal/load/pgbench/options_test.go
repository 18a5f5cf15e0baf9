package pgbench_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/pgbench"
)

func TestBadOptions(t *testing.T) {
	for want, options := range map[string]map[string]string{
		"size of the data is missing": {},
		`no option "client"`:          {"scale": "1", "client": "3"},
		"data and scale":              {"scale": "1", "data": "1GiB"},
		"not a size":                  {"data": "large"},
		"clients":                     {"scale": "1", "clients": "0"},
		"threads":                     {"scale": "1", "clients": "2", "threads": "3"},
		"transactions per second":     {"scale": "1", "rate": "-1"},
		"needs a rate":                {"scale": "1", "latency_limit": "10ms"},
		"not a time":                  {"scale": "1", "rate": "5", "latency_limit": "soon"},
		"protocol":                    {"scale": "1", "protocol": "carrier pigeon"},
		"tpcb-like, simple-update":    {"scale": "1", "script": "tpcc"},
		"there twice":                 {"scale": "1", "script": "select-only select-only"},
		"no weight":                   {"scale": "1", "script": "select-only@x"},
		"has /dev/sdb":                {"scale": "1", "disk": "/dev/sdz"},
		"not a value":                 {"scale": "1", "shared_buffers": "1GB -c archive_command=x"},
		"not a name":                  {"scale": "1", "endpoint": "host=x"},
		"own settings":                {"scale": "1", "endpoint": "x", "work_mem": "4MB"},
		"own disks":                   {"scale": "1", "endpoint": "x", "disk": "/dev/sdb"},
		"count in units of MB":        {"scale": "1", "max_wal_size": "4096"},
		"count in units of 8kB":       {"scale": "1", "shared_buffers": "16384"},
		"is not a size such as":       {"data": "50"},
		`"0GiB" is not a size`:        {"data": "0GiB"},
		`jit: "1e30" is not one of`:   {"scale": "1", "jit": "1e30"},
		`"-1" is not a size`:          {"scale": "1", "shared_buffers": "-1"},
		"is not a time in":            {"scale": "1", "checkpoint_timeout": "5m"},
		"count in s: write":           {"scale": "1", "checkpoint_timeout": "300"},
		`"archive_command"`:           {"scale": "1", "archive_command": "x"},
		"8 GiB and the database":      {"data": "60GiB"},
	} {
		_, err := pgbench.Generator{}.Plan(workload(t, options))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
}

func TestPlan(t *testing.T) {
	w := workload(t, map[string]string{"data": "2GiB", "clients": "500", "wal_disk": "/dev/sdc", "rate": "100", "max_wal_size": "4GB", "shared_buffers": "1GB"})
	p, err := pgbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Program.Commands, "\n") + "\n" + strings.Join(p.Program.Data, "\n") + "\n" + strings.Join(p.Notes, "\n")
	for _, want := range []string{"-c max_wal_size=4GB -c shared_buffers=1GB", "--client=500 --jobs=2", "--rate=100", "scale 136, 1.99 GiB", "about 4 GiB",
		"share its CPUs"} {
		if !strings.Contains(text, want) {
			t.Errorf("plan lacks %q:\n%s", want, text)
		}
	}
	if len(p.Engine.Notes) != 1 || p.Engine.Notes[0].Code != interval.NoteContended {
		t.Errorf("notes of the engine: %+v", p.Engine.Notes)
	}
	if len(p.Extents) != 2 || p.Extents[1].Length != 4<<30 || p.Jobs[0].RateIOPS != 100 || p.Engine.Loop != "open" {
		t.Errorf("%+v", p)
	}
	w.Options["script"] = "select-only@9 tpcb-like"
	if p, err = (pgbench.Generator{}).Plan(w); err != nil || len(p.Jobs) != 2 || p.Depth() != 500 { // clients choose among the scripts
		t.Errorf("queue depth %d of %d jobs, want 500 of 2 (%v)", p.Depth(), len(p.Jobs), err)
	}
	w.Prefill, w.Scale = true, load.Scale{Factor: 0.01}
	p, err = pgbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Join(p.Program.Commands, "\n")
	if !strings.Contains(text, "--scale=1 ") || !strings.Contains(text, "max_wal_size=64MB") || !strings.Contains(text, "shared_buffers=16MB") || p.ScaledFrom < 1<<30 {
		t.Errorf("rehearsal: %s\n%+v", text, p)
	}
}
