package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// scsiRun is one command in a guest with two SCSI disks of 64 MiB: /dev/sda, which is /dev/sg0 too, and /dev/sdb, /dev/sg1.
type scsiRun struct {
	program, words string
	code           int
	says           string // part of its output
}

func (r *scsiRun) command() string {
	if r.program == "bragg" {
		return "bragg io" + r.words
	}
	return r.program + r.words
}

const (
	scsiJob    = " --name=x --filename=/dev/sg0 --ioengine=sg --thread "
	scsiProven = " --allow-device=/dev/sg0 --device-serial=scsi1 --device-size=64m --device-overwrite=data"
	// The kernel's scsi_debug has commands that QEMU's disk has not: it compares, and what was unmapped is zero.
	memoryJob    = " --name=x --filename=/dev/sg1 --ioengine=sg --thread "
	memoryProven = " --allow-device=/dev/sg1 --device-serial=4000 --device-size=64m --device-overwrite=data"

	scsiArea = "--rw=write --bs=4k --size=128k --offset=32m "
)

// scsiRuns are done one after the other. What one of bragg and fio wrote, the other verifies.
var scsiRuns = []scsiRun{
	{"bragg", scsiJob + "--rw=write --bs=64k --size=4m", 77, "refuse"},
	{"bragg", scsiJob + "--rw=write --bs=64k --size=4m --allow-device=/dev/sg0 --device-serial=other --device-size=64m", 77, "scsi1"},
	{"bragg", scsiJob + "--rw=randwrite --bs=8k --size=4m --iodepth=8 --fsync=7 --verify=crc32c" + scsiProven, 0, ""},
	{"fio", scsiJob + "--rw=write --bs=8k --size=4m --verify=crc32c --verify_only", 0, ""},
	{"fio", scsiJob + "--rw=write --bs=16k --size=4m --offset=8m --verify=md5 --do_verify=0", 0, ""},
	{"bragg", scsiJob + "--rw=write --bs=16k --size=4m --offset=8m --verify=md5 --verify_only --readfua=1" + scsiProven, 0, ""},
	{"bragg", scsiJob + "--rw=read --bs=16k --size=4m --offset=8m --verify=md5 --iodepth=4", 0, ""},
	{"bragg", scsiJob + "--rw=write --bs=16k --size=4m --offset=9m --verify=md5 --verify_only" + scsiProven, 3, "verify"},

	{"bragg", scsiJob + scsiArea + "--sg_write_mode=write_and_verify" + scsiProven, 0, ""},
	{"fio", scsiJob + scsiArea + "--sg_write_mode=verify_bytchk_00", 0, ""},
	{"bragg", scsiJob + scsiArea + "--sg_write_mode=verify_bytchk_00" + scsiProven, 0, ""},
	{"bragg", scsiJob + scsiArea + "--buffer_pattern=0xabcd1234 --writefua=1" + scsiProven, 0, ""},
	{"bragg", scsiJob + "--rw=write --bs=4k --size=64k --offset=40m --sg_write_mode=same" + scsiProven, 0, ""},

	{"bragg", memoryJob + scsiArea + "--buffer_pattern=0xabcd1234" + memoryProven, 0, ""},
	{"fio", memoryJob + scsiArea + "--buffer_pattern=0xabcd1234 --sg_write_mode=verify_bytchk_01", 0, ""},
	{"bragg", memoryJob + scsiArea + "--buffer_pattern=0xabcd1234 --sg_write_mode=verify_bytchk_01" + memoryProven, 0, ""},
	{"bragg", memoryJob + scsiArea + "--buffer_pattern=0xabcd1234 --sg_write_mode=verify_bytchk_11" + memoryProven, 0, ""},
	{"fio", memoryJob + scsiArea + "--buffer_pattern=0xabcd1235 --sg_write_mode=verify_bytchk_01", 1, ""},
	{"bragg", memoryJob + scsiArea + "--buffer_pattern=0xabcd1235 --sg_write_mode=verify_bytchk_01" + memoryProven, 3, "err=84"},
	{"bragg", memoryJob + scsiArea + "--buffer_pattern=0xabcd1235 --sg_write_mode=verify_bytchk_11" + memoryProven, 3, "err=84"},
	{"bragg", memoryJob + "--rw=trim --bs=16k --size=64k --offset=32m" + memoryProven, 0, ""},
	{"bragg", memoryJob + scsiArea + "--zero_buffers --sg_write_mode=verify_bytchk_01" + memoryProven, 3, "err=84"},
	// QEMU takes WRITE SAME without data and does nothing.
	{"bragg", memoryJob + "--rw=write --bs=4k --size=64k --offset=32832k --sg_write_mode=write_same_ndob" + memoryProven, 0, ""},
	{"fio", memoryJob + "--rw=write --bs=4k --size=128k --offset=32m --zero_buffers --sg_write_mode=verify_bytchk_01", 0, ""},

	{"bragg", scsiJob + "--rw=read --bs=1000 --size=1m", 3, "no multiple of 512"},
	{"bragg", " --name=x --filename=/dev/zero --ioengine=sg --rw=read --size=64k", 3, "no SCSI disk"},
	{"bragg", scsiJob + "--rw=write --sg_write_mode=write_same --verify=md5 --size=64k" + scsiProven, 65, "sg_write_mode"},
	{"bragg", " --name=x --filename=/dev/sda1 --ioengine=sg --rw=read --size=64k", 3, "use /dev/sda with an offset"},
}

// TestSCSICommandsOnARealDisk drives ioengine=sg beside the real fio's in a guest with a virtio-scsi disk, and looks at the
// disk afterwards.
func TestSCSICommandsOnARealDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 64<<20); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, r := range scsiRuns {
		if strings.Contains(r.words, "/dev/sda1") {
			// A partition comes last: bragg refuses to write to a disk that has one.
			script.WriteString("/bin/busybox printf 'n\\np\\n1\\n2048\\n4095\\nw\\n' | /bin/busybox fdisk /dev/sda > /dev/null 2>&1; until [ -b /dev/sda1 ]; do /bin/busybox sleep 0.1; done\n")
		}
		fmt.Fprintf(&script, "echo \"run %d begins\"; %s 2>&1; echo \"run %d ends $?\"\n", i, r.command(), i)
	}
	console := bootOnce(t, disk, script.String())
	for i, r := range scsiRuns {
		m := regexp.MustCompile(fmt.Sprintf(`(?s)run %d begins\s(.*?)run %d ends (\d+)`, i, i)).FindStringSubmatch(console)
		if m == nil {
			t.Fatalf("run %d did not end; console:\n%s", i, console)
		}
		if m[2] != fmt.Sprint(r.code) || !strings.Contains(strings.ToLower(m[1]), strings.ToLower(r.says)) {
			t.Errorf("%s: ended with %s, want %d and %q:\n%s", r.command(), m[2], r.code, r.says, m[1])
		}
	}
	checkSCSIDisk(t, disk)
}

// checkSCSIDisk looks at what the commands left on the medium.
func checkSCSIDisk(t *testing.T, path string) {
	t.Helper()
	medium, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := func(kib, length int) []byte { return medium[kib<<10 : (kib+length)<<10] }
	if want := bytes.Repeat([]byte{0xab, 0xcd, 0x12, 0x34}, 32<<10); !bytes.Equal(part(32<<10, 128), want) {
		t.Errorf("the pattern is not on the medium: % x …", part(32<<10, 128)[:16])
	}
	for block := range 16 {
		b := part(40<<10+4*block, 4)
		if !bytes.Equal(b, bytes.Repeat(b[:512], 8)) || bytes.Equal(b[:512], make([]byte, 512)) {
			t.Errorf("block %d of WRITE SAME is not one sector over and over", block)
		}
	}
	if rest := part(40<<10+64, 24<<10-64); !bytes.Equal(rest, make([]byte, len(rest))) {
		t.Error("something was written behind the regions of the jobs")
	}
}

// guestScript is the first process of the guest.
const guestScript = `#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
for m in $($B cat /modules/order); do $B insmod /modules/$m; done
until [ -b /dev/sda ] && [ -c /dev/sg0 ]; do $B sleep 0.1; done
$B insmod /modules/scsi_debug dev_size_mb=64 lbpu=1 lbprz=1 sector_size=512 delay=0
until [ -b /dev/sdb ] && [ -c /dev/sg1 ]; do $B sleep 0.1; done
$B mkdir /dev/shm; $B mount -t tmpfs tmp /dev/shm; $B mount -t tmpfs tmp /tmp; cd /tmp
export PATH=/bin HOME=/tmp
%s
echo GUEST ENDS
$B poweroff -f
`

// bootOnce boots a guest that runs a script on a disk, and returns what it said when it has powered itself off.
func bootOnce(t *testing.T, disk, script string) string {
	t.Helper()
	dir := t.TempDir()
	kernel := writeGuest(t, dir, script)
	console := filepath.Join(dir, "console")
	const patience = 10 * time.Minute // an emulated guest on a slow machine; 40 seconds here
	qemu := exec.Command(testreq.Program(t, "qemu-system-x86_64"),
		"-accel", "tcg", "-cpu", "qemu64", "-m", "768", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+console,
		"-kernel", kernel, "-initrd", filepath.Join(dir, "initramfs"), "-append", "console=ttyS0 quiet panic=-1",
		"-device", "virtio-scsi-pci,id=scsi", "-drive", "if=none,id=disk,format=raw,discard=unmap,file="+disk,
		"-device", "scsi-hd,drive=disk,bus=scsi.0,serial=scsi1")
	var said bytes.Buffer
	qemu.Stderr = &said
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = qemu.Process.Kill() })
	err := qemu.Wait()
	late.Stop()
	text, readErr := os.ReadFile(console)
	if err != nil || readErr != nil || !bytes.Contains(text, []byte("GUEST ENDS")) {
		t.Fatalf("the guest did not end by itself: %v %v %s; console:\n%s", err, readErr, said.Bytes(), text)
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

// writeGuest writes an initramfs with busybox, bragg, fio and the modules of SCSI disks, and returns the path of a kernel.
func writeGuest(t *testing.T, dir, script string) (kernel string) {
	t.Helper()
	run := func(program string, words ...string) string {
		cmd := exec.Command(testreq.Program(t, program), words...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", program, words, err, out)
		}
		return string(out)
	}
	k := testreq.UnpackKernel(t)
	bragg, fio := filepath.Join(dir, "bragg"), testreq.Program(t, "fio")
	run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bragg, "github.com/braggdev/bragg/cmd/bragg")
	files := map[string]string{"bin/busybox": testreq.Program(t, "busybox"), "bin/bragg": bragg, "bin/fio": fio}
	for word := range strings.FieldsSeq(run("ldd", fio)) {
		if strings.HasPrefix(word, "/") {
			files[word[1:]] = word
		}
	}
	order := k.Order(t, "virtio_pci", "virtio_scsi", "sd_mod", "sg")
	for _, name := range append(order, "scsi_debug") { // which is loaded last, with parameters
		files["modules/"+name] = k.Modules[name]
	}
	testreq.WriteInitramfs(t, filepath.Join(dir, "initramfs"), files, map[string]string{
		"init": fmt.Sprintf(guestScript, script), "modules/order": strings.Join(order, "\n"),
	})
	return k.Image
}
