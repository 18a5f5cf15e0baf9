package blockdev

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Consent is how a user proves which device is meant, and defines which of its content may be lost. All given facts must
// match.
type Consent = load.Consent

// Names that a consent may allow to be overwritten, in addition to signatures.
const (
	Data         = "data"  // content without a known signature
	ForeignClaim = "claim" // the claim tag of another controller, or of another device
)

// identityReasons compares the facts in the consent with the device.
func identityReasons(s State, c Consent) []Reason {
	var reasons []Reason
	differ := func(what, found, said string) {
		if found == "" {
			found = "none"
		}
		reasons = append(reasons, Reason{
			Code:   "wrong-device",
			Text:   fmt.Sprintf("its %s is %s and not %s", what, found, said),
			Advice: "find the device that was meant: lsblk -o NAME,SIZE,MODEL,SERIAL,WWN lists them; names like sda move between starts",
		})
	}
	if c.Serial != "" && c.Serial != s.Device.Serial {
		differ("serial number", s.Device.Serial, c.Serial)
	}
	if c.WWN != "" && plainWWN(c.WWN) != plainWWN(s.Device.WWN) {
		differ("WWN", s.Device.WWN, c.WWN)
	}
	if c.SizeBytes != 0 && c.SizeBytes != s.SizeBytes {
		differ("size", fmt.Sprintf("%d bytes", s.SizeBytes), fmt.Sprint(c.SizeBytes))
	}
	if c.Link != "" && !slices.Contains(persistentNames(s), filepath.Clean(c.Link)) {
		differ("persistent name", strings.Join(persistentNames(s), ", "), c.Link)
	}
	if len(reasons) == 0 && !proven(s, c) {
		reasons = append(reasons, Reason{
			Code:   "unproven",
			Text:   fmt.Sprintf("nothing proves that this is the intended device (%s)", describeIdentity(s)),
			Advice: proofAdvice(s),
		})
	}
	return reasons
}

// proven reports whether the given facts identify the device. They have been verified before.
func proven(s State, c Consent) bool {
	if c.Serial != "" || c.WWN != "" || ownClaim(s, c) || c.Own && c.SizeBytes != 0 {
		return true
	}
	return s.Identity() == "" && c.SizeBytes != 0 && c.Link != ""
}

// ownClaim reports whether the device has a tag of the same controller, made for this device.
func ownClaim(s State, c Consent) bool {
	tag := s.Content.Claim
	return tag != nil && c.Controller != "" && tag.Controller == c.Controller &&
		tag.SizeBytes == s.SizeBytes && tag.Identity == clip(s.Identity())
}

// persistentNames are the names that a consent may give together with the size. The node's own name counts only if there is
// no persistent one.
func persistentNames(s State) []string {
	names := slices.Clone(s.Device.Links)
	if s.Device.Backing != "" {
		names = append(names, s.Device.Backing)
	}
	if len(names) == 0 && s.Identity() == "" {
		names = append(names, s.Node)
	}
	return names
}

// plainWWN strips the prefixes that programs add to the same number.
func plainWWN(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, prefix := range []string{"wwn-", "nvme-", "naa.", "eui.", "uuid.", "0x"} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

func describeIdentity(s State) string {
	parts := []string{unit.FormatBytes(s.SizeBytes)}
	for _, p := range [][2]string{{"model", s.Device.Model}, {"serial", s.Device.Serial}, {"WWN", s.Device.WWN}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func proofAdvice(s State) string {
	switch {
	case s.Device.Serial != "":
		return fmt.Sprintf("compare with the label of the disk, and if it is the one, name its serial number %q", s.Device.Serial)
	case s.Device.WWN != "":
		return fmt.Sprintf("if this is the disk, name its WWN %q", s.Device.WWN)
	}
	return fmt.Sprintf("the device has no serial number: if it is the one, name its size of %d bytes and one of its names: %s",
		s.SizeBytes, strings.Join(persistentNames(s), ", "))
}

// contentReasons names content that would be lost without the user's consent.
func contentReasons(s State, c Consent) []Reason {
	if c.Own {
		return nil
	}
	var reasons []Reason
	allowed := func(name string) bool { return slices.Contains(c.Overwrite, name) }
	for _, name := range s.SignatureNames() {
		if allowed(name) {
			continue
		}
		reasons = append(reasons, Reason{
			Code:   "signature",
			Text:   fmt.Sprintf("it carries %s (%s)", nameOf(name), places(s.Content.Signatures, name)),
			Advice: fmt.Sprintf("if its data may be lost, name %q as overwritable", name),
		})
	}
	tag := s.Content.Claim
	own := ownClaim(s, c)
	if tag != nil && !own && !allowed(ForeignClaim) {
		reasons = append(reasons, Reason{
			Code: "foreign-claim",
			Text: fmt.Sprintf("controller %q claimed it in run %q on %s, as a device of %d bytes with the identity %q",
				tag.Controller, tag.Run, tag.Claimed.Format("2006-01-02"), tag.SizeBytes, tag.Identity),
			Advice: fmt.Sprintf("ask its owner; if its data may be lost, name %q as overwritable", ForeignClaim),
		})
	}
	empty := s.Content.HeadZero && s.Content.TailZero
	if !empty && len(s.Content.Signatures) == 0 && tag == nil && !allowed(Data) {
		reasons = append(reasons, Reason{
			Code:   "data",
			Text:   "it is not empty: " + edges(s.Content) + " is not all zeros, and holds nothing that is known here",
			Advice: fmt.Sprintf("some databases write to bare devices; if the data may be lost, name %q as overwritable", Data),
		})
	}
	return reasons
}

func edges(c Content) string {
	switch {
	case c.HeadZero:
		return "the last MiB"
	case c.TailZero:
		return "the first MiB"
	}
	return "neither the first nor the last MiB"
}

// places describes where a signature is: "at byte 1024", "at byte 0 of sda1".
func places(signatures []Signature, name string) string {
	var found []string
	for _, sig := range signatures {
		if sig.Name != name {
			continue
		}
		text := fmt.Sprintf("byte %d", sig.Offset)
		if sig.Where != "" {
			text += " of " + sig.Where
		}
		found = append(found, text)
	}
	return textio.Few(found, foundShown)
}

// foundShown bounds how many users of a device a message names.
const foundShown = 4

// nameOf describes a signature in words.
func nameOf(name string) string {
	words := map[string]string{
		"gpt": "a GPT partition table", "dos": "an MBR partition table", "lvm": "an LVM physical volume",
		"md": "a member of an MD array", "luks": "a LUKS container", "zfs": "a member of a ZFS pool",
		"bcache": "a bcache device", "bluestore": "a Ceph BlueStore", "swap": "swap space", "vmfs": "a VMFS volume",
		"iso9660": "an ISO 9660 image", "ext-journal": "the journal of another ext file system",
	}
	if text, ok := words[name]; ok {
		return text
	}
	if name == Data {
		return "data of an unknown kind"
	}
	return "a file system of type " + name
}
