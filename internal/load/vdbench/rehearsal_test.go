package vdbench_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/vdbench"
)

// A rehearsal shortens every run by its time factor, to 3 seconds at least. Less data alone does not shorten any.
func TestRehearsal(t *testing.T) {
	raw := two + "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=100,elapsed=60,warmup=20,pause=10,forthreads=(1,2)\nrd=rd2,wd=wd1,iorate=10,elapsed=2,interval=1\n"
	files := smallTree + "fwd=fwd1,fsd=fsd1,operation=read\nrd=rd1,fwd=fwd1,fwdrate=100,elapsed=60,warmup=20,pause=10,forthreads=(1,2)\nrd=rd2,fwd=fwd1,fwdrate=10,elapsed=2,interval=1\n"
	for _, c := range []struct {
		scale   load.Scale
		runtime time.Duration
		takes   string
		note    string
	}{
		{load.Scale{}, 0, "2m52s", "For loops: threads=2; warm-up 20 s"},
		{load.Scale{Factor: 0.1, BlocksMin: 8}, 0, "2m52s", "For loops: threads=2; warm-up 20 s"},
		{load.Scale{Factor: 0.1, BlocksMin: 8, Times: 0.1}, 0, "19s", "For loops: threads=2; warm-up 2 s; 6 s in this rehearsal"},
		{load.Scale{Times: 0.01}, 0, "8.5s", "For loops: threads=2; warm-up 200 ms; 3 s in this rehearsal"},
		{load.Scale{Factor: 0.1, BlocksMin: 8, Times: 0.1}, 86 * time.Second, "1m26s", "For loops: threads=2; warm-up 10 s; 30 s in this rehearsal"},
	} {
		for _, text := range []string{raw, files} {
			w := workload(t, text)
			w.Scale, w.Runtime = c.scale, c.runtime
			p, err := vdbench.Generator{}.Plan(w)
			if err != nil {
				t.Fatal(err)
			}
			noted := slices.ContainsFunc(p.Notes, func(note string) bool { return strings.HasPrefix(note, "run 2") && strings.HasSuffix(note, c.note) })
			if p.TakesMost.String() != c.takes || p.TakesShortest != 8*time.Second || !noted {
				t.Errorf("%+v: takes %s, at least %s; notes %q", c.scale, p.TakesMost, p.TakesShortest, p.Notes)
			}
		}
	}
}

// An own vdbench gets whole seconds.
func TestRehearsalOfOwn(t *testing.T) {
	for times, want := range map[float64]string{
		0:    "rd=rd1,wd=wd1,iorate=10,elapsed=60,warmup=20,pause=10,interval=1\n",
		0.11: "rd=rd1,wd=wd1,iorate=10,elapsed=7,warmup=3,pause=2,interval=1\n",
		1e-3: "rd=rd1,wd=wd1,iorate=10,elapsed=3,warmup=1,pause=1,interval=1\n",
	} {
		w := played(t, "sd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=10,elapsed=60,warmup=20,pause=10,interval=5\n")
		w.Scale.Times = times
		in, err := vdbench.Generator{}.Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range in.(load.Teller).Outputs() {
			if o.Name == "run.parm" && !strings.HasSuffix(o.Text, want) {
				t.Errorf("%g: vdbench gets\n%s", times, o.Text)
			}
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}
