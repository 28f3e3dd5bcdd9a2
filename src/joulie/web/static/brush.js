// How things are drawn on a tile.

export function shape(pen, x, y, width, height, radius) {
  pen.beginPath();
  if (radius > 1) pen.roundRect(x, y, width, height, radius);
  else pen.rect(x, y, width, height);
}

export function outline(pen, x, y, width, height, radius, colour, thickness) {
  const inset = thickness / 2;
  shape(pen, x + inset, y + inset, width - thickness, height - thickness, radius);
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.stroke();
}

// A folded corner: somebody pinned this node.
export function mark(pen, right, top, size, colour) {
  pen.beginPath();
  pen.moveTo(right - size, top);
  pen.lineTo(right, top);
  pen.lineTo(right, top + size);
  pen.fillStyle = colour;
  pen.fill();
}

// The end of a name tells nodes apart, so it is the beginning that goes.
export function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text.slice(-40);
  while (kept.length > 1 && pen.measureText(`…${kept}`).width > width) kept = kept.slice(1);
  return `…${kept}`;
}
