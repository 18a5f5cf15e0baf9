package mlperf_test

import (
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/mlperf"
)

// The published demand of one accelerator follows from the parameters of its model.
func TestDemandOfAccelerators(t *testing.T) {
	for _, c := range []struct {
		model, accelerator string
		samples, megabytes float64
	}{
		{"unet3d", "v100", 2.940, 431.1}, {"unet3d", "a100", 11.006, 1613.5}, {"unet3d", "h100", 21.672, 3177.1},
		{"resnet50", "v100", 328.2, 37.6}, {"resnet50", "a100", 919.5, 105.4}, {"resnet50", "h100", 1785.7, 204.8},
		{"cosmoflow", "v100", 106.8, 302.2}, {"cosmoflow", "a100", 181.5, 513.3}, {"cosmoflow", "h100", 285.7, 808.1},
	} {
		samples, megabytes := mlperf.Demand(c.model, c.accelerator)
		if math.Abs(samples/c.samples-1) > 5e-4 || math.Abs(megabytes-c.megabytes) > 0.06 {
			t.Errorf("%s on %s: %.4f samples/s and %.2f MB/s, want %g and %g", c.model, c.accelerator, samples, megabytes, c.samples, c.megabytes)
		}
	}
}

// The worked example of the rules: 8 accelerators in one host of 512 GiB are bound by steps; more memory, by memory.
func TestDataSetSizeByRule(t *testing.T) {
	if n, byMemory := mlperf.SamplesByRule(500, 7, 8, 512<<30, 146_600_628); n != 28_000 || byMemory {
		t.Errorf("%d samples, by memory: %t", n, byMemory)
	}
	if n, byMemory := mlperf.SamplesByRule(1, 7, 8, 512<<30, 146_600_628); n != 18_751 || !byMemory {
		t.Errorf("%d samples, by memory: %t", n, byMemory)
	}
}

func TestFindMount(t *testing.T) {
	const text = `22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
90 22 0:50 / /mnt/train rw,relatime shared:40 - nfs4 nas:/train rw,vers=4.2,rsize=1048576,proto=tcp,nconnect=16,addr=10.0.0.1
91 22 0:51 / /mnt/with\040blank rw shared:41 - tmpfs tmpfs rw,size=1k
damaged line
`
	for path, want := range map[string]string{
		"/home/x":           "ext4 /dev/vda (rw,relatime,discard)",
		"/mnt/training":     "ext4 /dev/vda (rw,relatime,discard)",
		"/mnt/train/a":      "nfs4 nas:/train (rw,relatime,vers=4.2,rsize=1048576,proto=tcp,nconnect=16,addr=10.0.0.1)",
		"/mnt/with blank/a": "tmpfs tmpfs (rw,size=1k)",
	} {
		if got := mlperf.FindMount(text, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for n := range len(text) {
		mlperf.FindMount(text[:n], "/mnt/train/a")
	}
	if got := mlperf.FindMount("1 2 0:1 / / rw - x "+strings.Repeat("y", 1000), "/"); len(got) > 400 {
		t.Errorf("%d bytes", len(got))
	}
}
