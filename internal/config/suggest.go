package config

import "strings"

// nearest returns the candidate that is at most two letters away from the word, the nearest first, then the first; ""
// when there is none.
func nearest(word string, candidates []string) string {
	best, distance := "", 3
	for _, c := range candidates {
		if d := letters(strings.ToLower(word), c); d < distance && d < min(len(word), len(c)) {
			best, distance = c, d
		}
	}
	return best
}

// letters counts the letters to insert, drop, change or swap with their neighbour to get from a to b.
func letters(a, b string) int {
	// A difference in length alone is too much: no need to fill the table for a long word.
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean returns the end of a message that suggests better; "" when there is nothing to suggest.
func didYouMean(better string) string {
	if better == "" {
		return ""
	}
	return ", did you mean " + quote(better) + "?"
}

// oneOf joins words for a message: a, b or c.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
