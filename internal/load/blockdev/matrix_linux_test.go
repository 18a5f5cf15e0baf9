package blockdev

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/testreq"
)

// How a state of the matrix comes about.
const (
	real   = "real"    // made on loop and zram devices of the test's own
	madeUp = "made up" // a made-up sysfs tree and image, because this cannot be made everywhere
)

// deviceState is one row of the matrix. A row gives a state and a consent; by default the consent says everything that
// could be said in favour, so that the refusal is for the one thing that the row is about.
type deviceState struct {
	title string
	how   string
	// One of the two makes it. Of a real one the path is opened as well.
	real   func(rig) (path string)
	madeUp func(tree) State
	change func(*Consent)
	want   []string // codes of the reasons, nil for a legal one
}

func TestWrongDiskMatrix(t *testing.T) {
	refused := append(inUseReal(), inUseMadeUp()...)
	refused = append(append(refused, contentReal()...), contentMadeUp()...)
	refused = append(append(refused, identityReal()...), identityMadeUp()...)
	refused = append(refused, notDisks()...)
	// Beside these, TestOpenNoticesAChange has the states that come about between check and open.
	if len(refused) < 30 {
		t.Errorf("%d states are refused, want 30", len(refused))
	}
	legal := legalStates()
	if len(legal) < 5 {
		t.Errorf("%d states are legal, want 5", len(legal))
	}
	for _, row := range append(refused, legal...) {
		t.Run(row.how+"/"+row.title, func(t *testing.T) { checkRow(t, row) })
	}
}

func checkRow(t *testing.T, row deviceState) {
	if row.madeUp != nil {
		s := row.madeUp(newTree(t))
		consent := consentOf(row, s)
		checkReasons(t, Check(s, consent), row.want)
		return
	}
	r := newRig(t)
	path := row.real(r)
	s := r.look(path)
	consent := consentOf(row, s)
	checkReasons(t, Check(s, consent), row.want)
	f, _, err := Open(path, consent, os.O_WRONLY)
	checkReasons(t, err, row.want)
	if err != nil {
		return
	}
	defer f.Close()
	if row.want != nil {
		return // a defect, which must not write on top of it
	}
	if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
		t.Errorf("write: %v", err)
	}
}

func consentOf(row deviceState, s State) Consent {
	c := consentTo(s)
	if row.change != nil {
		row.change(&c)
	}
	return c
}

// checkReasons wants a refusal for exactly these reasons, each with a text and advice.
func checkReasons(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		if want != nil {
			t.Errorf("accepted, want it refused for %v", want)
		}
		return
	}
	var refusal *Refusal
	var userErr *diag.Error
	if !errors.As(err, &refusal) || !errors.As(err, &userErr) {
		t.Errorf("%v, want a refusal for %v", err, want)
		return
	}
	var codes []string
	for _, r := range refusal.Reasons {
		if r.Text == "" || r.Advice == "" {
			t.Errorf("reason %+v lacks a text or advice", r)
		}
		if !slices.Contains(codes, r.Code) {
			codes = append(codes, r.Code)
		}
	}
	slices.Sort(codes)
	if !slices.Equal(codes, slices.Sorted(slices.Values(want))) {
		t.Errorf("refused for %v, want %v: %v", codes, want, err)
	}
	if userErr.ExitCode() != diag.ExitRefused || userErr.Hint == "" || userErr.Code != "unsafe-device" {
		t.Errorf("error %+v", userErr)
	}
	t.Logf("%v\n%s", err, userErr.Hint)
}

func only(codes ...string) []string { return codes }

func inUseReal() []deviceState {
	return []deviceState{
		{title: "mounted", how: real, want: only("mounted"), real: func(r rig) string {
			device := r.ext4(r.loop(64 * mib))
			r.mount(device)
			return device
		}},
		{title: "partition mounted", how: real, want: only("mounted"), real: func(r rig) string {
			device := r.loop(64*mib, "--partscan")
			r.mount(r.ext4(r.partition(device, mib, 32*mib)))
			return device
		}},
		{title: "disk of the partition mounted", how: real, want: only("mounted"), real: func(r rig) string {
			device := r.ext4(r.loop(64*mib, "--partscan"))
			r.mount(device)
			return r.partition(device, mib, 32*mib)
		}},
		{title: "swap", how: real, want: only("swap"), real: func(r rig) string {
			device := r.loop(64 * mib)
			r.swap(device)
			return device
		}},
		{title: "loop device on it", how: real, want: only("held"), real: func(r rig) string {
			device := r.loop(64 * mib)
			r.loopOn(device)
			return device
		}},
		{title: "loop device on it mounted", how: real, want: only("mounted", "held"), real: func(r rig) string {
			device := r.ext4(r.loop(64 * mib))
			r.mount(r.loopOn(device))
			return device
		}},
		{title: "loop device on a partition of it mounted", how: real, want: only("mounted", "held"), real: func(r rig) string {
			device := r.loop(64*mib, "--partscan")
			part := r.ext4(r.partition(device, mib, 32*mib))
			r.mount(r.loopOn(part))
			return device
		}},
		{title: "below it a device that is mounted", how: real, want: only("mounted"), real: func(r rig) string {
			device := r.ext4(r.loop(64 * mib))
			upper := r.loopOn(device)
			r.mount(device)
			return upper
		}},
		{title: "two loop devices on one file", how: real, want: only("held"), real: func(r rig) string {
			path := r.file(64 * mib)
			r.loopOn(path)
			return r.loopOn(path)
		}},
		{title: "two loop devices on one file by two names", how: real, want: only("held"), real: func(r rig) string {
			path := r.file(64 * mib)
			if err := os.Link(path, path+"-again"); err != nil {
				r.t.Fatal(err)
			}
			r.loopOn(path + "-again")
			return r.loopOn(path)
		}},
		{title: "other loop device on its file mounted", how: real, want: only("held", "mounted"), real: func(r rig) string {
			path := r.file(64 * mib)
			r.mount(r.ext4(r.loopOn(path)))
			return r.loopOn(path)
		}},
		{title: "mounted in another mount namespace", how: real, want: only("busy"), real: func(r rig) string {
			device := r.ext4(r.loop(64 * mib))
			r.mountElsewhere(device)
			return device
		}},
		{title: "journal of a mounted file system", how: real, want: only("busy"), real: func(r rig) string {
			journal, device := r.loop(64*mib), r.loop(64*mib)
			r.run("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "journal_dev", journal)
			r.run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "device="+journal, device)
			r.mount(device)
			return journal
		}},
		{title: "file below a loop device", how: real, want: only("held"), real: func(r rig) string {
			path := r.file(64 * mib)
			r.loopOn(path)
			return path
		}},
		{title: "file below a mounted loop device, by another name", how: real, want: only("held", "mounted"), real: func(r rig) string {
			path := r.file(64 * mib)
			r.mount(r.ext4(r.loopOn(path)))
			if err := os.Link(path, path+"-again"); err != nil {
				r.t.Fatal(err)
			}
			return path + "-again"
		}},
		{title: "read-only", how: real, want: only("read-only"), real: func(r rig) string { return r.loop(64*mib, "--read-only") }},
		{title: "zram that was not set up", how: real, want: only("empty"), real: func(r rig) string { return r.zram(0) }},
	}
}

func contentReal() []deviceState {
	nothing := func(c *Consent) { c.Overwrite = nil }
	return []deviceState{
		{title: "ext4", how: real, want: only("signature"), change: nothing, real: func(r rig) string { return r.ext4(r.loop(64 * mib)) }},
		{title: "ext4 where data may be lost but not ext4", how: real, want: only("signature"),
			change: func(c *Consent) { c.Overwrite = []string{Data, "xfs"} },
			real:   func(r rig) string { return r.ext4(r.loop(64 * mib)) }},
		{title: "xfs", how: real, want: only("signature"), change: nothing, real: func(r rig) string {
			device := r.loop(320 * mib)
			r.run("mkfs.xfs", "-q", "-f", device)
			return device
		}},
		{title: "swap that is switched off", how: real, want: only("signature"), change: nothing, real: func(r rig) string {
			device := r.loop(64 * mib)
			r.run("mkswap", device)
			return device
		}},
		{title: "file system on a partition", how: real, want: only("signature"), change: nothing, real: func(r rig) string {
			device := r.loop(64*mib, "--partscan")
			r.ext4(r.partition(device, mib, 32*mib))
			return device
		}},
		{title: "unknown data on a partition", how: real, want: only("signature"), real: func(r rig) string {
			device := r.fill(r.loop(64*mib, "--partscan"), 512, sampleOf("GPT").parts[512])
			r.fill(r.partition(device, 2*mib, 32*mib), 4096, "a database's own format")
			return device
		}, change: func(c *Consent) { c.Overwrite = []string{"gpt"} }},
		{title: "backup of GPT only", how: real, want: only("signature"), change: nothing, real: func(r rig) string {
			return r.fill(r.loop(64*mib), 64*mib-512, sampleOf("backup of GPT").parts[-512])
		}},
		{title: "unknown data at its beginning", how: real, want: only("data"), change: nothing, real: func(r rig) string {
			return r.fill(r.loop(64*mib), 700_000, "a database's own format")
		}},
		{title: "unknown data at its end", how: real, want: only("data"), change: nothing, real: func(r rig) string {
			return r.fill(r.loop(64*mib), 64*mib-100, "a database's own format")
		}},
		{title: "claim of another controller", how: real, want: only("unproven", "foreign-claim"),
			change: func(c *Consent) { *c = Consent{Controller: "ours"} },
			real:   func(r rig) string { return r.claim(r.loop(64*mib), "theirs") }},
		{title: "file system made after our claim", how: real, want: only("signature"),
			change: func(c *Consent) { *c = Consent{Controller: "ours"} },
			real: func(r rig) string {
				// mkfs.ext4 itself empties the end of a device and the tag with it; others do not.
				return r.fill(r.claim(r.loop(64*mib), "ours"), 1024, sampleOf("ext4").parts[1024])
			}},
		{title: "copy of a claimed disk on a larger one", how: real, want: only("unproven", "foreign-claim"),
			change: func(c *Consent) { *c = Consent{Controller: "ours"} },
			real: func(r rig) string {
				claimed := r.claim(r.loop(64*mib), "ours")
				larger := r.loop(65 * mib)
				tag := make([]byte, claimLength)
				f, err := os.Open(claimed)
				if err != nil {
					r.t.Fatal(err)
				}
				defer f.Close()
				if err := readFull(f, tag, UsableBytes(64*mib)); err != nil {
					r.t.Fatal(err)
				}
				return r.fill(larger, UsableBytes(65*mib), string(tag))
			}},
	}
}

func identityReal() []deviceState {
	loop := func(r rig) string { return r.loop(64 * mib) }
	return []deviceState{
		{title: "no consent", how: real, want: only("unproven"), real: loop, change: func(c *Consent) { *c = Consent{} }},
		{title: "size only", how: real, want: only("unproven"), real: loop, change: func(c *Consent) { c.Link = "" }},
		{title: "another size", how: real, want: only("wrong-device"), real: loop, change: func(c *Consent) { c.SizeBytes++ }},
		{title: "another backing file", how: real, want: only("wrong-device"), real: loop, change: func(c *Consent) { c.Link += "x" }},
		{title: "serial number of a device that has none", how: real, want: only("wrong-device"), real: loop,
			change: func(c *Consent) { c.Serial = "S4EVNF0M" }},
		{title: "several things at once", how: real, want: only("mounted", "read-only", "wrong-device", "signature"),
			change: func(c *Consent) { *c = Consent{Serial: "S4EVNF0M"} },
			real: func(r rig) string {
				path := r.file(64 * mib)
				r.run("mkfs.ext4", "-q", "-F", path)
				device := r.loopOn(path, "--read-only")
				r.mount(device)
				return device
			}},
	}
}

func notDisks() []deviceState {
	return []deviceState{
		{title: "character device", how: real, want: only("not-a-disk"), real: func(rig) string { return "/dev/ptmx" }},
		{title: "folder", how: real, want: only("not-a-disk"), real: func(r rig) string { return r.dir }},
		{title: "node of no driver", how: real, want: only("unreadable"), real: func(r rig) string {
			path := r.dir + "/node"
			if _, err := os.Stat("/sys/dev/block/240:254"); err == nil {
				r.t.Fatal("device number 240:254, reserved for experiments, is in use")
			}
			r.run("mknod", path, "b", "240", "254")
			return path
		}},
	}
}

func legalStates() []deviceState {
	return []deviceState{
		{title: "regular file", how: real, real: func(r rig) string { return r.file(64 * mib) },
			change: func(c *Consent) { *c = Consent{} }},
		{title: "empty loop device by size and backing file", how: real, real: func(r rig) string { return r.loop(64 * mib) },
			change: func(c *Consent) { c.Overwrite = nil }},
		{title: "by a symbolic link", how: real, real: func(r rig) string {
			link := r.dir + "/link"
			if err := os.Symlink(r.loop(64*mib), link); err != nil {
				r.t.Fatal(err)
			}
			return link
		}},
		{title: "our claim, after a load wrote everywhere else", how: real,
			change: func(c *Consent) { *c = Consent{Controller: "ours"} },
			real: func(r rig) string {
				device := r.claim(r.ext4(r.loop(64*mib)), "ours")
				noise := make([]byte, UsableBytes(64*mib))
				if err := readFull(noiseOf(1), noise[:4<<20], 0); err != nil {
					r.t.Fatal(err)
				}
				for at := 4 << 20; at < len(noise); at += 4 << 20 {
					copy(noise[at:], noise[:4<<20])
				}
				return r.fill(device, 0, string(noise))
			}},
		{title: "ext4 that was named", how: real, real: func(r rig) string { return r.ext4(r.loop(64 * mib)) },
			change: func(c *Consent) { c.Overwrite = []string{"ext4"} }},
		{title: "zram by size and its own node", how: real, real: func(r rig) string { return r.zram(64 * mib) }},
		{title: "partition that was named", how: real, real: func(r rig) string {
			return r.partition(r.loop(64*mib, "--partscan"), mib, 32*mib)
		}},
		{title: "null device", how: real, real: func(rig) string { return "/dev/null" }},
		{title: "disk by its serial number", how: madeUp, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			return k.look(Number{8, 0}, image{})
		}, change: func(c *Consent) { *c = Consent{Serial: "S4EVNF0M"} }},
		{title: "disk by its WWN as udev writes it", how: madeUp, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"device/wwid": "naa.5000C500A1B2C3D4"})
			return k.look(Number{8, 0}, image{})
		}, change: func(c *Consent) { *c = Consent{WWN: "0x5000c500a1b2c3d4"} }},
		{title: "partition beside the one that holds the root file system", how: madeUp, madeUp: func(k tree) State {
			k.rootOnLVM()
			return k.look(Number{8, 2}, image{})
		}},
	}
}

func noiseOf(seed uint64) noise { return noise(seed) }

// The matrix must not pass because nothing could be made.
func TestMatrixNeeds(t *testing.T) {
	testreq.Root(t)
	for _, name := range []string{"losetup", "mkfs.ext4", "mkfs.xfs", "mkswap", "swapon", "mount", "unshare", "addpart"} {
		testreq.Program(t, name)
	}
}
