package blockdev

// changed names what differs between two looks at the same path, empty where it is still the same. A regular file may
// have grown.
func changed(before, after State) string {
	a, b := before.Device, after.Device
	switch {
	case before.Kind != after.Kind:
		return "kind"
	case before.File != after.File:
		return "file"
	case before.Number != after.Number:
		return "device number"
	case a.Sequence != b.Sequence:
		return "disk, which carries the same number,"
	case a.Name != b.Name:
		return "name"
	case before.Kind == Block && before.SizeBytes != after.SizeBytes:
		return "size"
	case a.Serial != b.Serial:
		return "serial number"
	case a.WWN != b.WWN:
		return "WWN"
	}
	return ""
}

// replaced is the reason where a path came to mean another device between two looks at it.
var replaced = Reason{
	Code:   "changed",
	Text:   "it is not any more the device that it was a moment ago",
	Advice: "a disk was exchanged or a device was set up again at this moment; check it before you retry",
}
