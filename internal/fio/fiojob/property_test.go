package fiojob_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
)

// drawFile makes a job file of options that X-Ray's family uses, with values that fit together.
func drawFile(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("[global]\nioengine=libaio\ndirect=1\n")
	for i := range rapid.IntRange(1, 3).Draw(t, "jobs") {
		block := rapid.SampledFrom([]string{
			"bs=4k", "bs=8k,64k", "bs=1m", "bssplit=8k/90:32k/10,8k/50:16k", "bsrange=4k-16k", "bssplit=64k/20:1m/80",
		}).Draw(t, "block")
		fmt.Fprintf(&b, "[job%d]\nfilename=/dev/sd%c\n%s\n", i, 'b'+i, block)
		fmt.Fprintf(&b, "rw=%s\n", rapid.SampledFrom([]string{"read", "write", "randread", "randrw", "rw:64k"}).Draw(t, "rw"))
		for _, key := range []string{"size", "filesize", "offset", "io_size", "offset_increment"} {
			if rapid.Bool().Draw(t, key) {
				fmt.Fprintf(&b, "%s=%dm\n", key, rapid.Int64Range(64, 1<<17).Draw(t, key))
			}
		}
		if rapid.Bool().Draw(t, "zones") {
			fmt.Fprintf(&b, "zonesize=%dm\nzoneskip=%dm\n", rapid.IntRange(1, 4096).Draw(t, "zonesize"),
				rapid.IntRange(1, 4096).Draw(t, "zoneskip"))
		}
		if rapid.Bool().Draw(t, "rate") {
			fmt.Fprintf(&b, "rate_iops=%d,%d\nrate_process=poisson\n", rapid.IntRange(1, 9999).Draw(t, "r"),
				rapid.IntRange(1, 9999).Draw(t, "w"))
		}
		fmt.Fprintf(&b, "iodepth=%d\nnumjobs=%d\n", rapid.IntRange(1, 256).Draw(t, "depth"), rapid.IntRange(1, 3).Draw(t, "clones"))
		if rapid.Bool().Draw(t, "flags") {
			b.WriteString("time_based\nnorandommap\nstonewall\n")
		}
	}
	return b.String()
}

func TestPrintedFilesMeanTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawFile(t)
		f, diags := fiojob.Parse("a", text, fiojob.Options{})
		if err := diags.Err(); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		printed := f.Print(nil)
		again, diags := fiojob.Parse("a", printed, fiojob.Options{})
		if len(diags) > 0 {
			t.Fatalf("%v in\n%s", diags, printed)
		}
		if twice := again.Print(nil); twice != printed {
			t.Fatalf("printed\n%s\nthen\n%s", printed, twice)
		}
		if got, want := meaning(again), meaning(f); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nis printed as\n%s\n%+v\n%+v", text, printed, want, got)
		}
	})
}

// meaning returns the jobs without what only tells where and how they were written.
func meaning(f *fiojob.File) []string {
	var out []string
	for _, j := range f.Jobs() {
		j.Options, j.Pos = nil, diag.Position{}
		text := fmt.Sprintf("%+v", j)
		before, _, _ := strings.Cut(text, " source:")
		out = append(out, before)
	}
	return out
}

func TestScaleKeepsItsPromises(t *testing.T) {
	const deviceBytes = int64(1) << 38
	device := func(string) (int64, bool) { return deviceBytes, true }
	rapid.Check(t, func(t *rapid.T) {
		f, _ := fiojob.Parse("a", drawFile(t), fiojob.Options{})
		factor := rapid.Float64Range(1e-7, 1).Draw(t, "factor")
		const blocksMin = 64
		before := region.Resolve(f, device).Jobs()
		after := region.Scale(region.Resolve(f, device), factor, blocksMin).Jobs()
		for i := range before {
			checkScaled(t, before[i], after[i], factor, blocksMin)
			was, errBefore := region.Of(&before[i], device)
			is, errAfter := region.Of(&after[i], device)
			if errBefore != nil || before[i].ZoneMode != "none" && errAfter == nil {
				continue // the job does not fit its device as it was drawn, or has other zones
			}
			if errAfter != nil || len(was) != len(is) {
				t.Fatalf("extents after scaling by %g: %v; before %+v", factor, errAfter, was)
			}
			for k := range is {
				cut := was[k].Offset+was[k].Length == deviceBytes // at the end of the device
				if is[k].Length > was[k].Length && !cut || is[k].Offset > was[k].Offset {
					t.Fatalf("extent grew from %+v to %+v", was[k], is[k])
				}
			}
		}
	})
}

func checkScaled(t *rapid.T, was, is fiojob.Job, factor float64, blocksMin int64) {
	_, block := was.BlockBounds()
	slack := float64(block)
	if stride := was.ZoneSize + was.ZoneSkip.Bytes; stride > 0 {
		// A whole number of zones is kept, each of which is rounded.
		slack += float64(was.Size.Bytes / stride * 2 * block)
	}
	for _, c := range []struct {
		name    string
		was, is int64
		floor   int64
	}{
		{"size", was.Size.Bytes, is.Size.Bytes, blocksMin}, {"offset", was.Offset.Bytes, is.Offset.Bytes, blocksMin},
		{"io_size", was.IOSize.Bytes, is.IOSize.Bytes, blocksMin}, {"zonesize", was.ZoneSize, is.ZoneSize, 1},
		{"zoneskip", was.ZoneSkip.Bytes, is.ZoneSkip.Bytes, 1},
		{"offset_increment", was.OffsetIncrement.Bytes, is.OffsetIncrement.Bytes, blocksMin},
	} {
		exact := float64(c.was) * factor
		switch {
		case c.is > c.was, c.was > 0 && c.is == 0:
			t.Fatalf("%s goes from %d to %d", c.name, c.was, c.is)
		case c.is < min(c.was, c.floor*block):
			t.Fatalf("%s goes from %d to %d, below %d blocks of %d", c.name, c.was, c.is, c.floor, block)
		case c.is != c.was && c.is%block != 0:
			t.Fatalf("%s goes from %d to %d, no multiple of %d", c.name, c.was, c.is, block)
		case exact > float64(c.floor*block) && c.is < c.was && math.Abs(float64(c.is)-exact) > slack:
			t.Fatalf("%s goes from %d to %d, want %g", c.name, c.was, c.is, exact)
		}
	}
	if is.RateIOPS != was.RateIOPS || is.BlockSize != was.BlockSize || is.IODepth != was.IODepth || is.NumJobs != was.NumJobs {
		t.Fatalf("scaling changed more than extents: %+v to %+v", was, is)
	}
}

// TestPrefillCoversWhatIsScaled checks that the prefill of a scaled file writes every byte of its jobs' first size
// bytes in whole blocks.
func TestPrefillCoversWhatIsScaled(t *testing.T) {
	device := func(string) (int64, bool) { return 1 << 38, true }
	rapid.Check(t, func(t *rapid.T) {
		f, _ := fiojob.Parse("a", drawFile(t), fiojob.Options{})
		scaled := region.Scale(region.Resolve(f, device), rapid.Float64Range(1e-6, 1).Draw(t, "factor"), 64)
		for i, p := range region.Prefill(scaled).Jobs() {
			j := scaled.Jobs()[i]
			block := p.BlockSize[fiojob.Write]
			switch {
			case p.ReadWrite != "write" || !p.Direct || p.TimeBased || block > 1<<20 || block < 4096 || p.IODepth != 4:
				t.Fatalf("prefill is %+v", p)
			case j.Size.Set && p.Size != j.Size, p.Offset != j.Offset, p.Size.Bytes%block != 0, p.Offset.Bytes%block != 0:
				t.Fatalf("prefill of size %v at %v is size %v at %v in blocks of %d", j.Size, j.Offset, p.Size, p.Offset, block)
			}
		}
	})
}

// FuzzParse checks that no text makes the parser crash, that what it reads without an error it prints so that it reads it
// again to the same meaning, and that text without doubt means the same in all readings.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "[", "[]", "[a]\n", "[a]\nbs=4k\nsize=50%\n", "[global]\nrw=randrw:8\n[a]\nbssplit=8k/90:32k/10,4k\n",
		"[a]\nfilename=x\\:y:z\nrate_iops=,5\n", "[a]\nsize=${X}\nnumjobs=$ncpus*(2+3)\n", "[a]\nbs=\x00\n",
		"[a]\nrandom_distribution=zipf:1.2\nzonesize=1m\nthinktime=1.5ms\n", "[a]\nrwmixread=70:30\nname= x\nkb_base=1000\nsize=1k\n",
		"include x\n[a]\ninclude y\n", "[a]\nsize=9223372036854775807\noffset=0x7fffffffffffffff\n", "[a]\nsync=1\nbuffered=0\nrw=read:-8k\n",
		"[0]\nfilename=\\:: :", "[0]\nfilename=: a:b", "[a]\nflow=3\nflow_id=1\nflow_sleep=5us\n[b]\nflow=2\nsync_file_range=wait_before,write:8\n",
		"[a]\nopendir=/x\nfile_append=1\nfallocate=0\nfadvise_hint=random\nunlink=yes\ncreate_fsync=0\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		options := fiojob.Options{CPUs: 2, PageSize: 4096, MemoryMB: 100, Host: true, Env: func(name string) (string, bool) { return name, true }}
		file, diags := fiojob.Parse("a", text, options)
		device := func(string) (int64, bool) { return 1 << 30, true }
		checkReadings(t, text, options, file)
		_, _ = region.Touched(file, device)
		_, _ = region.Touched(file, func(string) (int64, bool) { return 0, false })
		_ = region.Prefill(region.Scale(region.Resolve(file, device), 0.01, 64)).Print(nil)
		if diags.HasErrors() {
			return
		}
		printed := file.Print(nil)
		again, diags := fiojob.Parse("a", printed, options)
		if diags.HasErrors() && !strings.ContainsAny(text, "$%") {
			t.Fatalf("%q is printed as %q: %v", text, printed, diags)
		}
		if twice := again.Print(nil); !diags.HasErrors() && twice != printed {
			t.Fatalf("%q is printed as %q and then as %q", text, printed, twice)
		}
	})
}

// checkReadings: where the strict reading finds no doubt, the default and the exact one agree.
func checkReadings(t testing.TB, text string, options fiojob.Options, meant *fiojob.File) {
	t.Helper()
	options.Reading = syntax.Exact
	exact, wrong := fiojob.Parse("a", text, options)
	options.Reading = syntax.Strict
	_, doubt := fiojob.Parse("a", text, options)
	if doubt.HasErrors() {
		return
	}
	if wrong.HasErrors() {
		t.Errorf("%q is beyond doubt and no file in the exact reading: %v", text, wrong)
	}
	if got, want := meaning(exact), meaning(meant); !reflect.DeepEqual(got, want) {
		t.Errorf("%q is beyond doubt and means\n%q\nand exactly\n%q", text, want, got)
	}
}

// TestReadingsAgreeBeyondDoubt gives every option many texts, most of them doubtful, in all readings.
func TestReadingsAgreeBeyondDoubt(t *testing.T) {
	texts := append([]string{
		"50%", " 50%", "50 %", "101%", "-1", "-4k", "0", "2", "yes", "true", "read", " read", "Read", "randread", "randread:8", "randread:8k",
		"read:8k", "read:8kib", "read: 8k", "read:-8k", "read,x", "rw", "4k-8k", "8k-4k", "4k - 8k", "4k-8k,1k-2k", "4k/50:8k/50", "4k/50: 8k/50",
		" 4k/50:8k/50", "4k/60:8k/60", "4k/50:8k", "4k/x:8k", "4k/50%:8k", "8k/30.5:4k/69.5", "4k/50:8k/40", ",4k/100", "x:y", "x::y", ":x",
		"x\\:y", " x", "zipf:1.2", " zipf:1.2", "zipf", "random", "crc32c", "none", "strided", " strided", "0:1", "0,1", "1,0", "1:2:3", "libaio",
		" libaio", "0x", "1,", ",1", ",,1", ",", "${E}", "4${E}k", "$ncpus*2", "$ncpus *2k", "3-1", "1.5-2", "10:20", "70:30", "70/30", "5 ,6", "5, 6",
	}, doubtful...)
	options := fiojob.Options{CPUs: 2, PageSize: 4096, MemoryMB: 100, Host: true, Env: func(string) (string, bool) { return "", false }}
	for i, name := range fiojob.OptionNames() {
		if syntax.Canonical(name) != name || testing.Short() && i%10 != 0 {
			continue
		}
		for _, value := range texts {
			for _, text := range []string{"[a]\n" + name + "=" + value + "\n", "[global]\n" + name + "=1\n[a]\n" + name + "=" + value + "\n"} {
				file, _ := fiojob.Parse("a", text, options)
				checkReadings(t, text, options, file)
			}
		}
		checkReadings(t, "[a]\n"+name+"\n", options, parseAny("[a]\n"+name+"\n", options))
	}
}

func parseAny(text string, options fiojob.Options) *fiojob.File {
	f, _ := fiojob.Parse("a", text, options)
	return f
}
