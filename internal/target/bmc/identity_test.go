package bmc

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// One UUID as dmidecode shows it, and as BMCs do.
const (
	uuidDMI      = "4c4c4544-0058-4b10-8030-b7c04f513133"
	uuidSwapped  = "44454C4C-5800-104B-8030-B7C04F513133"
	uuidReversed = "3331514f-c0b7-3080-104b-580044454c4c"
	uuidBoth     = "3331514f-c0b7-3080-4b10-00584c4c4544" // the swapped one backwards
	uuidOther    = "4c4c4544-0058-4b10-8030-b7c04f513134"
)

func TestCompare(t *testing.T) {
	uuid := func(u string, serials ...string) Identity { return Identity{UUID: u, Serials: serials} }
	for name, c := range map[string]struct {
		a, b Identity
		want Match
		by   string
	}{
		"same UUID":                     {uuid(uuidDMI), uuid(uuidDMI), Same, "UUID"},
		"upper case without dashes":     {uuid(uuidDMI), uuid(strings.ToUpper(strings.ReplaceAll(uuidDMI, "-", ""))), Same, "UUID"},
		"SMBIOS order":                  {uuid(uuidDMI), uuid(uuidSwapped), Same, "UUID"},
		"IPMI order":                    {uuid(uuidDMI), uuid(uuidReversed), Same, "UUID"},
		"both":                          {uuid(uuidDMI), uuid(uuidBoth), Same, "UUID"},
		"other UUID":                    {uuid(uuidDMI), uuid(uuidOther), Differs, "UUID"},
		"same serial":                   {uuid("", "7XK0Q13"), uuid("", "CN12345", " 7xk0q13 "), Same, "serial"},
		"serial with dashes":            {uuid("", "ABC-123-45"), uuid("", "abc12345"), Same, "serial"},
		"other serial":                  {uuid("", "7XK0Q13"), uuid("", "7XK0Q14"), Differs, "serial"},
		"UUID decides":                  {uuid(uuidDMI, "7XK0Q13"), uuid(uuidOther, "7XK0Q13"), Differs, "UUID"},
		"UUID on one side only":         {uuid(uuidDMI, "7XK0Q13"), uuid("", "7XK0Q13"), Same, "serial"},
		"nothing in common":             {uuid(uuidDMI), uuid("", "7XK0Q13"), Unproven, ""},
		"nothing":                       {Identity{}, Identity{}, Unproven, ""},
		"placeholder UUID":              {uuid("03000200-0400-0500-0006-000700080009"), uuid("03000200-0400-0500-0006-000700080009"), Unproven, ""},
		"UUID of zeros":                 {uuid("00000000-0000-0000-0000-000000000000"), uuid("00000000-0000-0000-0000-000000000000"), Unproven, ""},
		"UUID of ones":                  {uuid("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"), uuid("ffffffffffffffffffffffffffffffff"), Unproven, ""},
		"no UUID at all":                {uuid("Not Settable"), uuid("Not Settable"), Unproven, ""},
		"half a UUID":                   {uuid(uuidDMI[:18]), uuid(uuidDMI[:18]), Unproven, ""},
		"placeholder serial":            {uuid("", "To Be Filled By O.E.M."), uuid("", "To be filled by O.E.M."), Unproven, ""},
		"default string":                {uuid("", "Default string"), uuid("", "Default string"), Unproven, ""},
		"zeros":                         {uuid("", "0000000000"), uuid("", "0000000000"), Unproven, ""},
		"counting":                      {uuid("", "0123456789"), uuid("", "0123456789"), Unproven, ""},
		"dots":                          {uuid("", ".........."), uuid("", ".........."), Unproven, ""},
		"too short":                     {uuid("", "A1"), uuid("", "A1"), Unproven, ""},
		"a made-up UUID leaves serials": {uuid("03000200-0400-0500-0006-000700080009", "7XK0Q13"), uuid(uuidDMI, "7XK0Q13"), Same, "serial"},
	} {
		for _, pair := range [][2]Identity{{c.a, c.b}, {c.b, c.a}} {
			if got, by := pair[0].Compare(pair[1]); got != c.want || by != c.by {
				t.Errorf("%s: got %d by %q, want %d by %q", name, got, by, c.want, c.by)
			}
		}
		if c.want == Same && !c.a.Known() {
			t.Errorf("%s: it is not known", name)
		}
	}
}

// However firmware and programs turn the bytes of a UUID, it is the same one; one bit more and it is another.
func TestUUIDKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := [uuidBytes]byte(rapid.SliceOfN(rapid.Byte(), uuidBytes, uuidBytes).Draw(t, "uuid"))
		turned := raw
		for range rapid.IntRange(0, 6).Draw(t, "turns") {
			if rapid.Bool().Draw(t, "backwards") {
				turned = backwards(turned)
			} else {
				turned = swapHead(turned)
			}
		}
		a, b := Identity{UUID: hex.EncodeToString(raw[:])}, Identity{UUID: hex.EncodeToString(turned[:])}
		if a.Known() != b.Known() && !madeUpUUID(raw[:]) && !madeUpUUID(turned[:]) {
			t.Fatalf("%v is known, %v not", a, b)
		}
		if m, _ := a.Compare(b); m != Same && a.Known() && b.Known() {
			t.Fatalf("%v is not %v", a, b)
		}
		turned[rapid.IntRange(0, 15).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		b.UUID = hex.EncodeToString(turned[:])
		if m, _ := a.Compare(b); m == Same {
			t.Fatalf("%v is %v", a, b)
		}
	})
}

// What a BMC says of itself is shown bounded, on one line, and without anything that a terminal obeys.
func TestHostileIdentity(t *testing.T) {
	shown := Identity{UUID: "\x1b[2Jx\n", Serials: []string{strings.Repeat("é", 1000), "\u202e"}}.shown()
	if strings.ContainsAny(shown, "\x1b\n\u202e") || len(shown) > 4*outsideBytesMax {
		t.Errorf("%d bytes: %s", len(shown), shown)
	}
}
