package guest

import (
	"encoding/binary"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An event of an input device: two words of time, which are skipped, then type, code, value (linux/input.h).
const (
	eventBytes = 24
	eventKey   = 1   // EV_KEY
	keyPower   = 116 // KEY_POWER
)

// watchButtons reports when the power button is pressed: a hypervisor presses it for a shutdown by ACPI.
func (m *machine) watchButtons() <-chan outcome {
	pressed := make(chan outcome, 1)
	names, _ := filepath.Glob("/sys/class/input/event*/device/name")
	found := false
	for _, path := range names {
		name, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(name), "Power Button") {
			continue
		}
		f, err := os.Open("/dev/input/" + filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			m.say("watch the power button: %v", err)
			continue
		}
		found = true
		go watchButton(f, pressed)
	}
	if !found {
		m.say("no power button found: an ACPI shutdown will not be noticed")
	}
	return pressed
}

func watchButton(f *os.File, pressed chan<- outcome) {
	defer f.Close()
	var event [eventBytes]byte
	for {
		if n, err := f.Read(event[:]); err != nil || n != len(event) {
			return
		}
		if isPress(event) {
			select {
			case pressed <- outcome{reason: "the power button was pressed"}:
			default:
			}
		}
	}
}

func isPress(event [eventBytes]byte) bool {
	return binary.NativeEndian.Uint16(event[16:]) == eventKey && binary.NativeEndian.Uint16(event[18:]) == keyPower &&
		binary.NativeEndian.Uint32(event[20:]) == 1
}

// watchSignals reports signals that request the end of PID 1: SIGTERM for power off, SIGINT (which the kernel sends for
// Ctrl-Alt-Del) for a restart.
func watchSignals() <-chan outcome {
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	asked := make(chan outcome, 1)
	go func() {
		s := <-signals
		asked <- outcome{reboot: s == unix.SIGINT, reason: "asked to end by a signal"}
	}()
	return asked
}

// end flushes all disks and switches the machine off.
func (m *machine) end(o outcome) {
	word, command := "power off", unix.LINUX_REBOOT_CMD_POWER_OFF
	if o.reboot {
		word, command = "restart", unix.LINUX_REBOOT_CMD_RESTART
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	unix.Sync()
	m.say("%s: %s", o.reason, word)
	for {
		err := unix.Reboot(command)
		m.say("%s: %v", word, err)
		time.Sleep(time.Second)
	}
}
