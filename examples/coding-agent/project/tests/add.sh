sum=$(sh src/add.sh 2 3)
[ "$sum" = 5 ] || { echo "2 + 3 is 5, not $sum"; exit 1; }
echo "the sum is right"
