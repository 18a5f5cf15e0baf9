package bmc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Identity is the identity of a machine, as the machine or its BMC reports it.
type Identity struct {
	UUID    string   `json:"uuid,omitempty"`    // of the system (DMI), as it was read
	Serials []string `json:"serials,omitempty"` // of the product and of the board, as they were read
}

func (i Identity) String() string {
	var parts []string
	if i.UUID != "" {
		parts = append(parts, "UUID "+i.UUID)
	}
	if len(i.Serials) > 0 {
		parts = append(parts, "serial "+strings.Join(i.Serials, ", "))
	}
	if len(parts) == 0 {
		return "no identity"
	}
	return strings.Join(parts, ", ")
}

// Known reports whether the identity has anything unique to one machine.
func (i Identity) Known() bool { return uuidKey(i.UUID) != "" || len(serialKeys(i.Serials)) > 0 }

// Match is the result of comparing two identities.
type Match int

const (
	Unproven Match = iota // they have nothing in common that could be compared
	Differs
	Same
)

// Compare compares two identities. If both have a UUID, only the UUID counts: serial numbers may be those of a chassis with
// several machines. by names what was compared.
func (i Identity) Compare(other Identity) (m Match, by string) {
	a, b := uuidKey(i.UUID), uuidKey(other.UUID)
	if a != "" && b != "" {
		if a == b {
			return Same, "UUID"
		}
		return Differs, "UUID"
	}
	mine, theirs := serialKeys(i.Serials), serialKeys(other.Serials)
	if len(mine) == 0 || len(theirs) == 0 {
		return Unproven, ""
	}
	if slices.ContainsFunc(mine, func(s string) bool { return slices.Contains(theirs, s) }) {
		return Same, "serial"
	}
	return Differs, "serial"
}

const uuidBytes = 16

// uuidKey returns the same key for all spellings of a UUID: upper or lower case, and the byte orders that firmware uses.
// SMBIOS before 2.6 and many BMCs swap the bytes of the first three fields, IPMI stores all 16 bytes backwards, and
// programs that print either may swap them again. It is "" for an invalid UUID, and for one that several machines share.
func uuidKey(text string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(raw) != uuidBytes || madeUpUUID(raw) {
		return ""
	}
	u := [uuidBytes]byte(raw)
	key := ""
	for _, v := range []([uuidBytes]byte){u, swapHead(u)} {
		for _, w := range []([uuidBytes]byte){v, backwards(swapHead(backwards(v)))} {
			for _, x := range []([uuidBytes]byte){w, backwards(w)} {
				if h := hex.EncodeToString(x[:]); key == "" || h < key {
					key = h
				}
			}
		}
	}
	return key
}

// swapHead swaps the byte order of the fields time_low, time_mid and time_hi.
func swapHead(u [uuidBytes]byte) [uuidBytes]byte {
	slices.Reverse(u[0:4])
	slices.Reverse(u[4:6])
	slices.Reverse(u[6:8])
	return u
}

func backwards(u [uuidBytes]byte) [uuidBytes]byte {
	slices.Reverse(u[:])
	return u
}

// madeUpUUIDs are placeholders that board makers forget to replace.
var madeUpUUIDs = []string{
	"03000200040005000006000700080009", "00020003000400050006000700080009", "12345678123456789012345678901234",
	"1234567812345678123456789abcdef0", "12345678123456781234567812345678", "00112233445566778899aabbccddeeff",
	"0123456789abcdef0123456789abcdef", "123456781234567890abcddeefaabbcc", "00010203040506070809101112131415",
	"000102030405060708090a0b0c0d0e0f",
}

// madeUpUUID reports whether a UUID is a placeholder of the firmware: a known one, or one with few different bytes.
func madeUpUUID(raw []byte) bool {
	different := map[byte]bool{}
	for _, b := range raw {
		different[b] = true
	}
	const differentBytesMin = 4
	return len(different) < differentBytesMin || slices.Contains(madeUpUUIDs, hex.EncodeToString(raw))
}

// madeUpSerials are placeholders for serial numbers, reduced to lower-case letters and digits.
var madeUpSerials = []string{
	"tobefilledbyoem", "defaultstring", "systemserialnumber", "serialnumber", "productserialnumber", "boardserialnumber",
	"baseboardserialnumber", "chassisserialnumber", "notspecified", "notapplicable", "notavailable", "notprovided", "notset", "none", "null",
	"unknown", "unspecified", "empty", "invalid", "oem", "default", "serial", "0123456789", "123456789", "1234567890", "123456789012",
	"12345678", "filledbyoem", "tbd", "todo", "test", "xxxxxxxx",
}

// serialKeys returns the valid serial numbers, reduced to lower-case letters and digits.
func serialKeys(serials []string) []string {
	var keys []string
	for _, s := range serials {
		key := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return -1
		}, s)
		if meansSomething(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// serialBytesMin prevents slot numbers and other short words from counting as serial numbers.
const serialBytesMin = 5

func meansSomething(key string) bool {
	if len(key) < serialBytesMin || slices.Contains(madeUpSerials, key) {
		return false
	}
	return strings.Trim(key, key[:1]) != "" // "00000000"
}

// shown formats an Identity for a message, bounded: it is external input.
func (i Identity) shown() string { return quoteOutside(i.String()) }

const outsideBytesMax = 300

// quoteOutside makes a text of another program safe for a message: one line, bounded, without control sequences.
func quoteOutside(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > outsideBytesMax {
		text = text[:outsideBytesMax] + "…"
	}
	quoted := fmt.Sprintf("%q", text)
	return quoted[1 : len(quoted)-1]
}

// OwnUUID is the UUID by which a hypervisor knows this machine, if this machine is one of its VMs: by DMI, which only root may read, or
// on a machine without DMI its machine-id. It is empty where it cannot be read.
func OwnUUID() string {
	text, err := os.ReadFile("/sys/class/dmi/id/product_uuid")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile("/etc/machine-id")
	}
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
