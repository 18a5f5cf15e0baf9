package fiojob_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// What options of control mean, and which texts they refuse.
func TestControlValues(t *testing.T) {
	for text, want := range map[string]string{
		"steadystate=iops_slope:0.3%\nss_dur=30\nss_interval=500ms": "iops_slope:0.300000% 30s 500ms",
		"steadystate=bw:1m\nss_dur=1m":                              "bw:1048576.000000 1m0s 0s",
		"steadystate=lat:50us\nss_dur=1":                            "lat:50000.000000 1s 0s",
	} {
		s := control(t, text).SteadyState
		if got := fmt.Sprint(s, " ", s.Duration, " ", s.CheckInterval); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string][]int{
		"cpus_allowed=0-2,5": {0, 1, 2, 5}, "cpus_allowed=3:4": {3, 4}, "cpumask=0x05": {0, 2}, "cpumask=2": {1},
	} {
		if got := control(t, text).CPUs; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]fiojob.FileService{
		"file_service_type=roundrobin": {}, "file_service_type=roundrobin:1": {}, "file_service_type=random:4": {Kind: "random", Count: 4},
		"file_service_type=zipf": {Kind: "zipf", Parameter: 1.1}, "file_service_type=gauss:20": {Kind: "normal", Parameter: 20},
	} {
		if got := control(t, text).FileService; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if got := control(t, "ignore_error=EAGAIN,ENOSPC:122").IgnoreErrors; fmt.Sprint(got) != "[[EAGAIN] [ENOSPC 122] []]" {
		t.Errorf("ignore_error: %v", got)
	}
	if c := control(t, "max_latency=5\nlatency_target=2ms\nrate_cycle=250"); c.LatencyMax != 5*time.Microsecond ||
		c.LatencyTarget != 2*time.Millisecond || c.RateCycle != 250*time.Millisecond {
		t.Errorf("times: %+v", c)
	}
	for text, code := range map[string]string{
		"steadystate=iops": "bad-value", "steadystate=iops:-1": "bad-value", "steadystate=speed:1%": "bad-value", "cpus_allowed=": "bad-value",
		"cpus_allowed=2-1": "bad-value", "cpus_allowed=99999": "bad-value", "cpumask=0": "bad-value", "file_service_type=zipf:1": "bad-value",
		"file_service_type=random:0": "bad-value", "ignore_error=a": "bad-value", "ignore_error=1,2,3,4": "bad-value",
		"latency_percentile=0": "bad-value", "latency_percentile=101": "bad-value", "prio=8": "bad-value", "nice=20": "bad-value",
		"rate_iops=10\nrate_iops_min=20": "rate-below-minimum", "rate=1m\nrate_min=2m": "rate-below-minimum",
		"steadystate=iops:1%": "steadystate-without-duration", "rate_iops=10\nthinktime=5ms\nrate_ignore_thinktime=1": "rate-keeps-thinktime",
	} {
		_, list := fiojob.Parse("t", "[a]\nsize=1m\n"+text+"\n", fiojob.Options{Host: true})
		if len(list) == 0 || list[0].Code != code || list.HasErrors() != (code != "steadystate-without-duration" && code != "rate-keeps-thinktime") {
			t.Errorf("%q: %v, want %s", text, list, code)
		}
	}
}

// Options about whole jobs are native where whole jobs run, and keep their class elsewhere.
func TestHostOptions(t *testing.T) {
	const text = "[a]\nsize=1m\nexitall\n"
	file, list := fiojob.Parse("t", text, fiojob.Options{Host: true})
	if len(list) > 0 || len(file.Unsupported()) > 0 || !file.Jobs()[0].Control.ExitAll {
		t.Errorf("as a host: %v, %v", list, file.Unsupported())
	}
	file, _ = fiojob.Parse("t", text, fiojob.Options{})
	if found := file.Unsupported(); len(found) != 1 || found[0].Code != "needs-fio" || found[0].Severity != diag.SeverityError {
		t.Errorf("as a workload: %v", found)
	}
}

func control(t *testing.T, text string) fiojob.Control {
	t.Helper()
	file, list := fiojob.Parse("t", "[a]\nsize=1m\n"+text+"\n", fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatalf("%q: %v", text, list)
	}
	return file.Jobs()[0].Control
}
