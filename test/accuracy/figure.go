package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that people who see few colours can tell apart, on white.
var (
	black  = color.NRGBA{A: 255}
	grey   = color.NRGBA{R: 110, G: 110, B: 110, A: 255}
	green  = color.NRGBA{R: 0, G: 145, B: 105, A: 255}
	red    = color.NRGBA{R: 205, G: 85, B: 0, A: 255}
	blue   = color.NRGBA{R: 0, G: 105, B: 170, A: 255}
	purple = color.NRGBA{R: 190, G: 95, B: 155, A: 255}
)

// algorithmColours are those of algorithms, in their order.
var algorithmColours = []color.Color{black, green, red, blue, purple}

var (
	dashed = []vg.Length{7, 5}
	dotted = []vg.Length{2, 4}
)

// line is a curve with its look and its name in the legend.
type line struct {
	curve
	name   string
	colour color.Color
	dashes []vg.Length
}

// axis goes from its first tick to its last.
type axis struct {
	label string
	ticks []plot.Tick
	log   bool
}

// ticks are labelled with so many decimals at the most.
func ticks(decimals int, values ...float64) []plot.Tick {
	var all []plot.Tick
	for _, v := range values {
		label := strconv.FormatFloat(v, 'f', -1, 64)
		if short := strconv.FormatFloat(v, 'f', decimals, 64); len(short) < len(label) {
			label = short
		}
		all = append(all, plot.Tick{Value: v, Label: label})
	}
	return all
}

// figure is a plot of lines.
type figure struct {
	title  string
	x, y   axis
	legend vg.Point // where it begins, from the upper left corner
	lines  []line
}

// svg draws the figure on white, which can be read on a dark page too.
func (f *figure) svg() ([]byte, error) {
	p := plot.New()
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	if err := f.draw(p); err != nil {
		return nil, err
	}
	p.Title.Text, p.Title.Padding = f.title, 8
	f.x.put(&p.X)
	f.y.put(&p.Y)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, 2
	p.Legend.XOffs, p.Legend.YOffs = f.legend.X, f.legend.Y
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, style.Font.Size)
	}
	canvas := vgsvg.New(600, 360)
	page := draw.New(canvas)
	page.SetColor(p.BackgroundColor)
	page.Fill(page.Path())
	p.Draw(draw.Crop(page, 10, -16, 8, -8))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	// Where the font is not installed, another of the same widths will do.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}

// draw adds the lines, those with gaps upon those without.
func (f *figure) draw(p *plot.Plot) error {
	var above []plot.Plotter
	for _, l := range f.lines {
		points := make(plotter.XYs, len(l.x))
		for i := range points {
			points[i] = plotter.XY{X: f.x.at(l.x[i]), Y: f.y.at(l.y[i])}
		}
		drawn, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("line %q: %w", l.name, err)
		}
		drawn.Color, drawn.Width, drawn.Dashes = l.colour, 1.8, l.dashes
		p.Legend.Add(l.name, drawn)
		if l.dashes != nil {
			above = append(above, drawn)
			continue
		}
		p.Add(drawn)
	}
	p.Add(above...)
	return nil
}

func (a axis) put(on *plot.Axis) {
	on.Label.Text, on.Label.Padding = a.label, 4
	ticks := make(plot.ConstantTicks, len(a.ticks))
	for i, t := range a.ticks {
		ticks[i] = plot.Tick{Value: a.at(t.Value), Label: t.Label}
	}
	on.Tick.Marker, on.Min, on.Max = ticks, ticks[0].Value, ticks[len(ticks)-1].Value
}

// at is where a value lies on the axis. The library's own logarithmic scale leaves a gap beside a centred label.
func (a axis) at(v float64) float64 {
	if a.log {
		return math.Log10(v)
	}
	return v
}
