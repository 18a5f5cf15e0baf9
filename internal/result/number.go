package result

import (
	"encoding/json"
	"math"
)

// Number is a float64 whose NaN and infinities are null in JSON.
type Number float64

// MarshalJSON writes null for values that JSON cannot express.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// MarshalJSON writes [seconds, value] with null for a gap.
func (p Point) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]Number{Number(p.Seconds), Number(p.Value)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Point) UnmarshalJSON(data []byte) error {
	var pair [2]Number
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	p.Seconds, p.Value = float64(pair[0]), float64(pair[1])
	return nil
}
