package scaling

import (
	"encoding/json"
	"math"
)

// Estimate is a value and its 95 % interval. High is +Inf, in JSON null, where the data does not bound it.
type Estimate struct{ Value, Low, High float64 }

// wireEstimate is an Estimate in JSON, which has no infinity.
type wireEstimate struct {
	Value float64  `json:"value"`
	Low   float64  `json:"low"`
	High  *float64 `json:"high"`
}

func (e Estimate) MarshalJSON() ([]byte, error) {
	w := wireEstimate{Value: e.Value, Low: e.Low}
	if !math.IsInf(e.High, 1) {
		w.High = &e.High
	}
	return json.Marshal(w)
}

func (e *Estimate) UnmarshalJSON(text []byte) error {
	var w wireEstimate
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*e = Estimate{w.Value, w.Low, math.Inf(1)}
	if w.High != nil {
		e.High = *w.High
	}
	return nil
}
