package blockdev

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// Reason is one reason not to write to a device.
type Reason struct {
	Code   string // stable: mounted, swap, held, busy, read-only, empty, unreadable, not-a-disk, wrong-device, unproven, signature, …
	Text   string
	Advice string
}

// Refusal lists all reasons not to write to a device. It is the cause inside the error that Check returns.
type Refusal struct {
	Path    string
	Reasons []Reason
}

func (r *Refusal) Error() string {
	texts := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		texts[i] = reason.Text
	}
	return strings.Join(texts, "; ")
}

// refuse makes the error for the user: one line of advice per reason, without duplicates.
func refuse(path string, reasons []Reason) error {
	var hints []string
	seen := map[string]bool{}
	for _, r := range reasons {
		if r.Advice != "" && !seen[r.Advice] {
			hints = append(hints, r.Advice)
		}
		seen[r.Advice] = true
	}
	return &diag.Error{
		Code: "unsafe-device", Exit: diag.ExitRefused,
		Message: fmt.Sprintf("refuse to write to %q", path),
		Hint:    strings.Join(hints, "\n"),
		Err:     &Refusal{Path: path, Reasons: reasons},
	}
}

// Check refuses writing in this state, with all reasons at once, as a *diag.Error that wraps a *Refusal. No consent allows
// writing to a device in use. A regular file needs no consent; it is refused only if it is in use as a device.
func Check(s State, c Consent) error {
	var reasons []Reason
	switch s.Kind {
	case Regular:
		reasons = append(faultReasons(s), useReasons(s)...)
	case Block:
		reasons = blockReasons(s, c)
	case Character:
		if !sink(s.Number) {
			reasons = []Reason{notADisk(s)}
		}
	default:
		reasons = []Reason{notADisk(s)}
	}
	if len(reasons) == 0 {
		return nil
	}
	return refuse(s.Path, reasons)
}

// sink reports whether a character device is /dev/null or /dev/zero, which discard writes.
func sink(n Number) bool { return n == Number{1, 3} || n == Number{1, 5} }

func notADisk(s State) Reason {
	text := "it is neither a file nor a disk"
	if s.Kind == Character {
		text = "it is a character device"
	}
	return Reason{
		Code: "not-a-disk", Text: text,
		Advice: "name a regular file or a block device",
	}
}

func blockReasons(s State, c Consent) []Reason {
	reasons := append(faultReasons(s), useReasons(s)...)
	if s.Busy && len(s.Uses) == 0 {
		reasons = append(reasons, Reason{
			Code: "busy", Text: "held exclusively by an unknown process",
			Advice: "it may be mounted in another mount namespace (a container), be the journal of a file system, or be held by a program: lsof and fuser name programs",
		})
	}
	if s.Device.ReadOnly {
		reasons = append(reasons, Reason{
			Code: "read-only", Text: "it is read-only",
			Advice: "a write-protected device is so on purpose; blockdev --setrw makes it writable",
		})
	}
	if s.SizeBytes <= 0 && len(s.Faults) == 0 {
		reasons = append(reasons, Reason{
			Code: "empty", Text: "it has no size",
			Advice: "the drive has no medium, or a loop or zram device has not been set up",
		})
	}
	if len(s.Faults) > 0 || s.SizeBytes <= 0 {
		return reasons // its identity and content could not be read
	}
	reasons = append(reasons, identityReasons(s, c)...)
	return append(reasons, contentReasons(s, c)...)
}

func faultReasons(s State) []Reason {
	var reasons []Reason
	for _, fault := range s.Faults {
		reasons = append(reasons, Reason{
			Code: "unreadable", Text: fault,
			Advice: "what cannot be examined is not written to: are you allowed to read it, and does the kernel's log say more?",
		})
	}
	return reasons
}

// useReasons lists each use of a device or file. Mounts through the same chain are merged: a root disk can have hundreds.
func useReasons(s State) []Reason {
	var groups []Use
	var whats [][]string
	for _, u := range s.Uses {
		same := func(g Use) bool { return g.Kind == u.Kind && slices.Equal(g.Chain, u.Chain) }
		at := slices.IndexFunc(groups, same)
		if at < 0 {
			groups, whats, at = append(groups, u), append(whats, nil), len(groups)
		}
		whats[at] = append(whats[at], u.What)
	}
	reasons := make([]Reason, len(groups))
	for i, g := range groups {
		reasons[i] = useReason(g, whats[i])
	}
	return reasons
}

func useReason(u Use, whats []string) Reason {
	who, way := "it", ""
	if len(u.Chain) > 1 {
		who, way = u.Chain[0], ", sharing its data with this device ("+strings.Join(u.Chain, " → ")+")"
	}
	what := textio.Few(whats, foundShown)
	switch u.Kind {
	case Mounted:
		return Reason{"mounted", who + " is mounted on " + what + way, "unmount first: umount " + whats[0]}
	case Swap:
		return Reason{"swap", who + " is in use as swap (" + what + ")" + way, "switch the swap off first: swapoff " + whats[0]}
	}
	return Reason{
		"held", who + " is held by " + what + way,
		"stop the layers on top of it first (LVM: vgchange -an, MD: mdadm --stop, device-mapper: dmsetup remove, loop: losetup -d)",
	}
}
