package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// loadAxis is how much a client asks for.
var loadAxis = axis{label: "mean rate of the client ÷ its limit", ticks: ticks(2, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2)}

// plots draws the plots and returns them as SVG, by file name.
func (f *findings) plots() (map[string][]byte, error) {
	files := make(map[string][]byte)
	for name, p := range map[string]*figure{
		"accuracy-near-the-limit.svg": f.nearFigure(),
		"accuracy-population.svg":     f.populationFigure(),
		"accuracy-admitted.svg":       f.admittedFigure(),
		"accuracy-attack.svg":         f.attackFigure(),
	} {
		svg, err := p.svg()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = svg
	}
	return files, nil
}

func (f *findings) nearFigure() *figure {
	p := &figure{
		title:  "Wrong verdicts of the sliding counter in the open loop: all counted, none refused",
		x:      loadAxis,
		y:      axis{label: "wrong verdicts, % of the requests", ticks: ticks(0, 0, 4, 8, 12, 16)},
		legend: vg.Point{X: 370},
	}
	for i, look := range []line{{colour: blue}, {colour: red}, {colour: green}} {
		look.curve, look.name = f.near[i].scaled(100), fmt.Sprintf("Poisson, limit %d", nearQuotas[i])
		p.lines = append(p.lines, look)
	}
	p.lines = append(p.lines, line{f.nearOn.scaled(100), fmt.Sprintf("in bursts, limit %d", tableQuota), red, dashed})
	return p
}

func (f *findings) populationFigure() *figure {
	p := &figure{
		title:  "The same traffic of people and machines, the limit moved",
		x:      axis{label: "limit, requests a minute", ticks: ticks(0, 1, 10, 100, 1000, 10_000), log: true},
		y:      axis{label: "wrong verdicts, % of all requests", ticks: ticks(4, 0.0001, 0.001, 0.01, 0.1, 1, 10), log: true},
		legend: vg.Point{X: 10, Y: -215},
	}
	for i, look := range []line{{colour: blue}, {colour: green}, {colour: red}} {
		look.name = f.Mixes[i].Name
		for quota := 1.0; quota <= 10_000; quota = math.Ceil(quota * 1.12) {
			look.x = append(look.x, quota)
			look.y = append(look.y, max(100*f.Mixes[i].wrong[int(quota)], 1e-6)) // a logarithm needs more than 0
		}
		p.lines = append(p.lines, look)
	}
	p.lines[1].dashes = dotted
	p.lines = append(p.lines, line{curve{[]float64{1, 10_000}, []float64{100 * quoted, 100 * quoted}}, "0.003 %", grey, dashed})
	return p
}

func (f *findings) admittedFigure() *figure {
	p := &figure{
		title:  fmt.Sprintf("What passes under Poisson traffic, limit %d a minute", tableQuota),
		x:      loadAxis,
		y:      axis{label: "admitted, % of what the exact log admits", ticks: ticks(0, 96, 98, 100, 102, 104, 106, 108, 110)},
		legend: vg.Point{X: 370},
	}
	for i, a := range algorithms {
		p.lines = append(p.lines, line{f.passing[i].scaled(100), a.String(), algorithmColours[i], nil})
	}
	return p
}

func (f *findings) attackFigure() *figure {
	p := &figure{
		title:  "A full burst 1 ms before a boundary, then 10 times the limit",
		x:      axis{label: "seconds after the boundary", ticks: ticks(0, -10, 0, 30, 60, 90, 120)},
		y:      axis{label: "admitted in the last 60 s ÷ limit", ticks: ticks(1, 0, 0.5, 1, 1.5, 2)},
		legend: vg.Point{X: 340, Y: -15},
	}
	for i, a := range algorithms {
		p.lines = append(p.lines, line{f.attack[i], a.String(), algorithmColours[i], nil})
	}
	p.lines[0].dashes, p.lines[3].dashes = dotted, dashed // they lie upon others
	return p
}

// scaled multiplies what the curve shows.
func (c curve) scaled(by float64) curve {
	s := newCurve(c.x)
	for i, y := range c.y {
		s.y[i] = by * y
	}
	return s
}
