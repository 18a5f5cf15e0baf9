//go:build linux

package program

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
)

// What the kernel would answer with EINVAL is refused beforehand: sizes that are not powers of two or out of bounds, and
// places that are not multiples of their size.
func TestAtomicWritesThatDoNotFit(t *testing.T) {
	for options, want := range map[string]string{
		"rw=write bs=4k":                                            "",
		"rw=randwrite bs=64k":                                       "",
		"rw=randwrite bssplit=4k/50:16k/50 ba=16k":                  "",
		"rw=read bs=512":                                            "",
		"rw=write bs=2k":                                            "blocks of 2048",
		"rw=write bs=128k":                                          "blocks of 131072",
		"rw=randwrite bs=12k":                                       "blocks of 12288",
		"rw=randwrite bs=16k ba=4k":                                 "multiples of 4096 and not of 16384",
		"rw=write bs=16k offset=4k":                                 "begins at 4096",
		"rw=randwrite bssplit=4k/50:16k/50":                         "multiples of 4096 and not of 16384",
		"rw=write bssplit=4k/50:16k/50 ba=16k":                      "one after the other",
		"rw=randwrite bsrange=4k-16k":                               "range",
		"rw=write:4k bs=16k":                                        "a skip of 4096",
		"rw=write bs=16k zonesize=32k zoneskip=4k zonemode=strided": "begins at",
	} {
		text := "[j]\nfilename=/dev/sdb\nsize=1m\nioengine=libaio\natomic=1\n" + strings.ReplaceAll(options, " ", "\n") + "\n"
		parsed, list := fiojob.Parse("job.fio", text, fiojob.Options{})
		if list.HasErrors() {
			t.Fatal(list)
		}
		w := load.Workload{Devices: []load.Device{{Name: "/dev/sdb", SizeBytes: 1 << 30}}}
		p, err := Compile(w, parsed.Jobs(), nil)
		if err != nil {
			t.Fatal(err)
		}
		job := &p.Jobs[0]
		if !job.Fio.Direct && job.Writes {
			t.Errorf("%s: atomic=1 does not imply direct access", options)
		}
		err = CheckAtomicWrites(job, w.Devices[0], 4096, 65536)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}
