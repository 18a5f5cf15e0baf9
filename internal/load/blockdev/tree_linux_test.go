package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a made-up machine: the folders that the kernel and udev would show.
type tree struct {
	t    *testing.T
	root string
}

const gib = int64(1) << 30

func newTree(t *testing.T) tree {
	k := tree{t, t.TempDir()}
	k.write("proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n")
	k.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
	return k
}

func (k tree) system() system {
	join := func(name string) string { return filepath.Join(k.root, name) }
	return system{sys: join("sys"), proc: join("proc"), dev: join("dev"), udev: join("run/udev")}
}

func (k tree) write(path, text string) {
	k.t.Helper()
	full := filepath.Join(k.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k tree) link(target, path string) {
	k.t.Helper()
	full := filepath.Join(k.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Symlink(target, full); err != nil {
		k.t.Fatal(err)
	}
}

// device makes a device with attributes such as "serial", "device/wwid". Its place is "sda", or "sda/sda1".
func (k tree) device(place, number string, size int64, attributes map[string]string) {
	name, folder := filepath.Base(place), "sys/devices/"+place
	k.write(folder+"/dev", number+"\n")
	k.write(folder+"/size", fmt.Sprintln(size/sectorBytes))
	k.write(folder+"/ro", "0\n")
	if !strings.Contains(place, "/") {
		k.write(folder+"/queue/logical_block_size", "512\n")
		k.write(folder+"/queue/rotational", "1\n")
	}
	for key, value := range attributes {
		k.write(folder+"/"+key, value+"\n")
	}
	k.link("../../devices/"+place, "sys/class/block/"+name)
	k.link("../../devices/"+place, "sys/dev/block/"+number)
	k.write("dev/"+name, "")
}

func (k tree) partition(disk, name, number string, start, size int64) {
	k.device(disk+"/"+name, number, size, map[string]string{"partition": "1", "start": fmt.Sprint(start / sectorBytes)})
}

// holds layers one device on another.
func (k tree) holds(upper, lowerPlace string) {
	k.write("sys/devices/"+lowerPlace+"/holders/"+upper, "")
	k.write("sys/devices/"+upper+"/slaves/"+filepath.Base(lowerPlace), "")
}

func (k tree) mounts(lines ...string) {
	text := ""
	for i, line := range lines {
		text += fmt.Sprintf("%d 1 %s\n", 30+i, line)
	}
	k.write("proc/self/mountinfo", text)
}

// look says what a device of the made-up machine is, with the content of an image of its size.
func (k tree) look(number Number, content image) State {
	s := k.system().describe(number)
	s.Path, s.Node = "/dev/"+s.Device.Name, "/dev/"+s.Device.Name
	content.size = s.SizeBytes
	if len(s.Faults) == 0 && s.SizeBytes > 0 {
		var faults []string
		s.Content, faults = readContent(content, s.SizeBytes, s.Device.Partitions)
		s.Faults = append(s.Faults, faults...)
	}
	return s
}

// consentTo is everything that a user could say in favour of a device: what is refused then is refused whatever is said.
func consentTo(s State) Consent {
	c := Consent{Serial: s.Device.Serial, WWN: s.Device.WWN, SizeBytes: s.SizeBytes, Controller: "ours"}
	if names := persistentNames(s); len(names) > 0 {
		c.Link = names[0]
	}
	c.Overwrite = append(s.SignatureNames(), Data, ForeignClaim)
	return c
}
