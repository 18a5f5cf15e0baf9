package chassis

import (
	"fmt"
	"io"
	"strings"
)

// IPMILAN is the configuration of OpenIPMI's simulator, ipmi_lan(5). The password is of letters and digits; so are paths
// (plainPath), because the simulator hands the command of chassis_control to a shell. The command is the keeper's own
// program with the arguments in command: the simulator runs in its PID namespace, where it is number 1.
func IPMILAN(h Machine, password string, command ...string) string {
	return fmt.Sprintf(`name "%s"
set_working_mc 0x20
  startlan 1
    addr %s 623
    priv_limit admin
    allowed_auths_callback md5
    allowed_auths_user md5
    allowed_auths_operator md5
    allowed_auths_admin md5
    guid %s
  endlan
  chassis_control "/proc/1/exe %s"
  user 2 true "%s" "%s" admin 10 md5
`, h.Name, h.BMC, guid(h.UUID), strings.Join(command, " "), User, password)
}

// IPMIController describes the BMC to the simulator, ipmi_sim_cmd(5): one management controller with the host's UUID,
// and its serial number in the FRU of the product and the board.
func IPMIController(h Machine) string {
	fru := fruData(h.Serial)
	hex := make([]string, len(fru))
	for i, b := range fru {
		hex[i] = fmt.Sprintf("0x%2.2x", b)
	}
	return fmt.Sprintf(`mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_set_guid 0x20 %s
sel_enable 0x20 1000 0x0a
mc_add_fru_data 0x20 0 %d data %s
mc_enable 0x20
`, guid(h.UUID), len(fru), strings.Join(hex, " "))
}

// guid is a UUID as most BMCs hand it out: in the byte order of SMBIOS (DSP0134, section 7.2.1), whose first three fields
// are little endian.
func guid(uuid string) string {
	h := strings.ReplaceAll(uuid, "-", "")
	return h[6:8] + h[4:6] + h[2:4] + h[0:2] + h[10:12] + h[8:10] + h[14:16] + h[12:14] + h[16:]
}

// fruData is an inventory as IPMI stores it: common header, board area, product area (Platform Management FRU
// Information Storage Definition 1.0, revision 1.3, sections 8, 11 and 12).
func fruData(serial string) []byte {
	const english = 25
	// Board: language, minutes since 1996 (not known), maker, product, serial, part, file.
	board := fruArea([]byte{english, 0, 0, 0}, "Bragg", "lab host", serial, "", "")
	// Product: language, maker, name, part, version, serial, asset tag, file.
	product := fruArea([]byte{english}, "Bragg", "lab host", "", "", serial, "", "")
	const headerBytes, unitBytes = 8, 8
	header := []byte{1, 0, 0, headerBytes / unitBytes, byte((headerBytes + len(board)) / unitBytes), 0, 0, 0}
	header[7] = fruSum(header)
	return append(append(header, board...), product...)
}

func fruArea(head []byte, fields ...string) []byte {
	const text8Bit, endOfFields, fieldBytesMax = 0xc0, 0xc1, 0x3f
	area := append([]byte{1, 0}, head...)
	for _, f := range fields {
		f = f[:min(len(f), fieldBytesMax)]
		if len(f) == 1 {
			f += " " // one byte would read as the end
		}
		if f == "" {
			area = append(area, 0)
			continue
		}
		area = append(append(area, text8Bit|byte(len(f))), f...)
	}
	area = append(area, endOfFields)
	for len(area)%8 != 7 {
		area = append(area, 0)
	}
	area = append(area, 0)
	area[1] = byte(len(area) / 8)
	area[len(area)-1] = fruSum(area)
	return area
}

// fruSum makes the sum of all bytes zero.
func fruSum(area []byte) byte {
	var sum byte
	for _, b := range area {
		sum += b
	}
	return -sum
}

// IPMI is a host as ipmi_sim's command switches it.
type IPMI struct {
	Power func() (Power, error)
	Reset func(Reset) error
}

// Command does what the simulator asks for: "get NAME…", "set NAME VALUE…" or "check NAME VALUE…". Answers are
// lines "NAME:VALUE". What a lab has no use for (boot device, identify light) is taken and forgotten.
func Command(words []string, out io.Writer, c IPMI) error {
	if len(words) < 2 {
		return fmt.Errorf("chassis command %q: want get, set or check with a name", words)
	}
	verb, words := words[0], words[1:]
	switch verb {
	case "check":
		return nil
	case "get":
		for _, name := range words {
			value := "0"
			switch name {
			case "power":
				p, err := c.Power()
				if err != nil {
					return err
				}
				if p != PowerOff {
					value = "1"
				}
			case "boot":
				value = "default"
			}
			if _, err := fmt.Fprintf(out, "%s:%s\n", name, value); err != nil {
				return err
			}
		}
		return nil
	case "set":
		for i := 0; i+1 < len(words); i += 2 {
			if kind, ok := ipmiResets[words[i]+" "+words[i+1]]; ok {
				if err := c.Reset(kind); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return fmt.Errorf("chassis command %q: want get, set or check", verb)
}

var ipmiResets = map[string]Reset{
	"power 0": ResetForceOff, "power 1": ResetOn, "reset 1": ResetForceRestart, "shutdown 1": ResetGracefulShutdown,
}
