package guest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const scsiBus = "/sys/bus/scsi"

// loadModules loads the modules of the machine. A module that does not load is logged and skipped: its hardware may be
// absent, and a missing device is reported when it is needed.
func (m *machine) loadModules() {
	text, err := os.ReadFile(ModulesFile)
	var modules Modules
	if err == nil {
		err = json.Unmarshal(text, &modules)
	}
	if err != nil {
		m.say("read the list of modules: %v", err)
		return
	}
	for _, name := range modules.Order(modaliases()) {
		if err := loadModule(modules.Modules[name]); err != nil {
			m.say("load module %s: %v", name, err)
		}
		if name == "scsi_mod" {
			// The kernel names SCSI disks in the order in which drivers happen to finish, so that sdb may be any of them.
			// No driver starts until all disks are known; then they start one after another.
			m.check(os.WriteFile(scsiBus+"/drivers_autoprobe", []byte("0"), 0))
		}
	}
	m.check(m.bindDisks())
}

func (m *machine) check(err error) {
	if err != nil {
		m.say("%v", err)
	}
}

func loadModule(one Module) error {
	f, err := os.Open(one.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), one.Parameters, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// modaliases lists the existing devices in the form that modules use.
func modaliases() []string {
	files, _ := filepath.Glob("/sys/bus/*/devices/*/modalias")
	var found []string
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil {
			found = append(found, strings.TrimSpace(string(text)))
		}
	}
	return found
}

// scsiAddress is host, channel, target and logical unit of a SCSI device: the order in which the hypervisor lists disks.
type scsiAddress [4]uint64

func parseSCSIAddress(name string) (a scsiAddress, ok bool) {
	fields := strings.Split(name, ":")
	if len(fields) != len(a) {
		return a, false
	}
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return a, false
		}
		a[i] = n
	}
	return a, true
}

func sortedByAddress(names []string) []string {
	type device struct {
		name    string
		address scsiAddress
	}
	var devices []device
	for _, name := range names {
		if address, ok := parseSCSIAddress(name); ok {
			devices = append(devices, device{name, address})
		}
	}
	slices.SortFunc(devices, func(a, b device) int { return slices.Compare(a.address[:], b.address[:]) })
	out := make([]string, 0, len(devices))
	for _, d := range devices {
		out = append(out, d.name)
	}
	return out
}

// bindDisks starts the driver of each SCSI disk and CD drive in the order of their addresses, which determines their names:
// the first disk is sda.
func (m *machine) bindDisks() error {
	entries, err := os.ReadDir(scsiBus + "/devices")
	if err != nil {
		return nil // no SCSI devices
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range sortedByAddress(names) {
		kind, err := os.ReadFile(filepath.Join(scsiBus, "devices", name, "type"))
		if err != nil {
			continue
		}
		driver := map[string]string{"0": "sd", "5": "sr"}[strings.TrimSpace(string(kind))] // SPC: direct access, CD
		if driver == "" {
			continue
		}
		err = os.WriteFile(filepath.Join(scsiBus, "drivers", driver, "bind"), []byte(name), 0)
		m.check(wrap(err, "start SCSI device %s", name))
	}
	// Disks that are attached later get the next names.
	return os.WriteFile(scsiBus+"/drivers_autoprobe", []byte("1"), 0)
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// blockDevices lists the nodes of disks and CD drives, without partitions, ordered by the length and letters of their
// names: sda before sdb before sdaa.
func blockDevices() []string {
	entries, _ := os.ReadDir("/sys/block")
	var out []string
	for _, e := range entries {
		out = append(out, "/dev/"+strings.ReplaceAll(e.Name(), "!", "/"))
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return out
}
